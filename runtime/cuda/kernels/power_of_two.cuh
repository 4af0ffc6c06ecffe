// 2^x in a single GPU instruction.

#ifndef PARTITA_RT_CUDA_POWER_OF_TWO_CUH
#define PARTITA_RT_CUDA_POWER_OF_TWO_CUH

#include "partita_rt/cuda/launch.cuh"

#include <cmath>

namespace partita_rt::cuda {

constexpr float kLog2E = 1.44269504088896340736f;

/// Returns 2^x to 2 ulp; 0 if that is below the normal floats. expf adds a reduction of its
/// argument, for arguments whose product with log2(e) has too large a rounding error; here they are
/// differences to the max of some numbers, or to the logarithm of their sum, and terms that small
/// add nothing.
__device__ inline float powerOfTwo(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_POWER_OF_TWO_CUH
