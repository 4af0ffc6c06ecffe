// Shared by the benchmarks of single kernels: checked CUDA calls, random operands.

#ifndef PARTITA_BENCH_GPU_BENCH_CUH
#define PARTITA_BENCH_GPU_BENCH_CUH

#include "partita_rt/cuda/launch.cuh"
#include "partita_rt/half.h"
#include "partita_rt/types.h"

#include <cstdio>
#include <cstdlib>

namespace partita_rt::cuda {

inline void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

/// Fills with uniform bfloat16 numbers in an interval of that width around 0, the same for every
/// type.
template <typename T>
__global__ void randomizeElements(T *x, int64_t n, uint64_t seed, float width) {
  int64_t i = globalThread();
  if (i >= n)
    return;
  uint64_t bits = (uint64_t(i) + seed) * 0x9E3779B97F4A7C15ull;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
  x[i] = float(BFloat16((float(bits >> 40) / float(1 << 24) - 0.5f) * width));
}

template <typename T> void randomize(T *x, int64_t n, uint64_t seed, float width) {
  PARTITA_RT_LAUNCH(randomizeElements<T>, unsigned((n + 255) / 256), 256, 0, Stream(), x, n,
                    seed << 40, width);
}

} // namespace partita_rt::cuda

#endif // PARTITA_BENCH_GPU_BENCH_CUH
