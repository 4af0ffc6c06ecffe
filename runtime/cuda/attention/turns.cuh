// How blocks of one launch take turns: by counters in global memory that only grow (modulo 2^32). A block's threads
// meet at a block barrier, and then one of them announces a count. Another block waits for it in one thread, and its
// threads meet at a barrier: all that the first block's threads did before is then visible to all of them. Without nvcc
// (launch.cuh), <without_nvcc/turns.h> has these functions.
//
// There is no deadlock, however many blocks run at once, if blocks draw their work (drawTicket), do it in that
// order, and wait only for work that was drawn before: the first that is not done waits for nothing.

#ifndef PARTITA_RT_CUDA_ATTENTION_TURNS_CUH
#define PARTITA_RT_CUDA_ATTENTION_TURNS_CUH

#include "partita_rt/cuda/launch.cuh"

#if !defined(__CUDACC__)
#include <without_nvcc/turns.h>
#endif

namespace partita_rt::cuda {

#if defined(__CUDACC__)

/// Returns a counter's value, which it raises by 1.
__device__ inline uint32_t drawTicket(uint32_t *counter) { return atomicAdd(counter, 1u); }

/// Raises a counter to `count`; only one block at a time may do so.
__device__ inline void announceCount(uint32_t *counter, uint32_t count) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(counter)),
               "r"(count)
               : "memory");
}
/// Raises a counter by 1.
__device__ inline void announceOne(uint32_t *counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(counter))
               : "memory");
}
/// Waits until a counter is at least `count`.
__device__ inline void waitForCount(const uint32_t *counter, uint32_t count) {
  uint32_t now;
  do
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(now)
                 : "l"(__cvta_generic_to_global(counter))
                 : "memory");
  while (int32_t(now - count) < 0);
}

#else

using without_nvcc::announceCount;
using without_nvcc::announceOne;
using without_nvcc::drawTicket;
using without_nvcc::waitForCount;

#endif

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_TURNS_CUH
