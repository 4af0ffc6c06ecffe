// Sums in global memory that threads add to again and again, one at a time: they stay in the L2 cache, where the
// additions happen (red), so no thread waits for them. Additions of one thread to one
// address happen in the order of its program, those of several in the order of their turns (turns.cuh). Sums that
// are subnormal become zeros.

#ifndef PARTITA_RT_CUDA_ATTENTION_RECENT_SUMS_CUH
#define PARTITA_RT_CUDA_ATTENTION_RECENT_SUMS_CUH

#include "partita_rt/cuda/launch.cuh"

namespace partita_rt::cuda {

/// *at += term.
__device__ inline void addToRecent(float *at, float term) {
#if defined(__CUDACC__)
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)),
               "f"(term)
               : "memory");
#else
  *at += term;
#endif
}

/// Returns *at, after the additions before.
__device__ inline float loadRecent(const float *at) {
#if defined(__CUDACC__)
  float sum;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];"
               : "=f"(sum)
               : "l"(__cvta_generic_to_global(at))
               : "memory");
  return sum;
#else
  return *at;
#endif
}

/// at[0 .. 4) += terms, for sm_90 and later. at: a multiple of 16 bytes.
__device__ inline void addToRecent(float *at, const float (&terms)[4]) {
#if defined(__CUDACC__)
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(
                   __cvta_generic_to_global(at)),
               "f"(terms[0]), "f"(terms[1]), "f"(terms[2]), "f"(terms[3])
               : "memory");
#else
  for (int i = 0; i < 4; ++i)
    at[i] += terms[i];
#endif
}

/// Returns at[0 .. 4), after the additions before.
__device__ inline float4 loadFourRecent(const float *at) {
#if defined(__CUDACC__)
  float4 sums;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(sums.x), "=f"(sums.y), "=f"(sums.z), "=f"(sums.w)
               : "l"(__cvta_generic_to_global(at))
               : "memory");
  return sums;
#else
  return {at[0], at[1], at[2], at[3]};
#endif
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_RECENT_SUMS_CUH
