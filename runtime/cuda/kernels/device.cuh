// What every kernel of the runtime begins with, beside what emitted ones do (launch.cuh): reports of
// wrong indices, and the types that kernels are made for.

#ifndef PARTITA_RT_CUDA_DEVICE_CUH
#define PARTITA_RT_CUDA_DEVICE_CUH

#include "partita_rt/cuda/launch.cuh"
#include "partita_rt/half.h"

namespace partita_rt::cuda {

/// The first fault of a step is kept.
__device__ inline void report(Fault *fault, Fault::Kind kind, int64_t value, int64_t position,
                              int64_t table, int64_t bound) {
  if (!fault || atomicCAS(&fault->kind, uint32_t(Fault::None), uint32_t(kind)) != Fault::None)
    return;
  fault->value = value;
  fault->position = position;
  fault->table = table;
  fault->bound = bound;
}

} // namespace partita_rt::cuda

/// FOR_STORAGE(F): F(T) for the types that activations are stored in.
#define FOR_STORAGE(F) F(float) F(Half) F(BFloat16)
/// FOR_RESULTS(F): F(Y, X) for results of their operands' type and for float results.
#define FOR_RESULTS(F)                                                                             \
  F(float, float) F(float, Half) F(Half, Half) F(float, BFloat16) F(BFloat16, BFloat16)

#endif // PARTITA_RT_CUDA_DEVICE_CUH
