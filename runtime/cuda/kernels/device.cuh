// Included by all of the runtime's kernels, in addition to what emitted ones include (launch.cuh):
// reports of invalid indices, products that are rounded, and the types that kernels are instantiated for.

#ifndef PARTITA_RT_CUDA_KERNELS_DEVICE_CUH
#define PARTITA_RT_CUDA_KERNELS_DEVICE_CUH

#include "partita_rt/cuda/launch.cuh"
#include "partita_rt/half.h"

namespace partita_rt::cuda {

/// Records a fault, unless the step already has one.
__device__ inline void report(Fault *fault, Fault::Kind kind, int64_t value, int64_t position,
                              int64_t table, int64_t bound) {
  if (!fault || atomicCAS(&fault->kind, uint32_t(Fault::None), uint32_t(kind)) != Fault::None)
    return;
  fault->value = value;
  fault->position = position;
  fault->table = table;
  fault->bound = bound;
}

/// A product that no addition contracts: the CPU rounds it, too.
__device__ inline float roundedProduct(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

} // namespace partita_rt::cuda

/// FOR_STORAGE(F): F(T) for each type that activations are stored in.
#define FOR_STORAGE(F) F(float) F(Half) F(BFloat16)
/// FOR_RESULTS(F): F(Y, X) for results in their operands' type and for float results.
#define FOR_RESULTS(F)                                                                             \
  F(float, float) F(float, Half) F(Half, Half) F(float, BFloat16) F(BFloat16, BFloat16)

#endif // PARTITA_RT_CUDA_KERNELS_DEVICE_CUH
