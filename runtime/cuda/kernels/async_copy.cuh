// Asynchronous copies from global to shared memory (cp.async), for sm_80 and later: they need no
// registers while in flight. Without nvcc (launch.cuh), <without_nvcc/mma.h> has functions of these
// names.

#ifndef PARTITA_RT_CUDA_KERNELS_ASYNC_COPY_CUH
#define PARTITA_RT_CUDA_KERNELS_ASYNC_COPY_CUH

#include "partita_rt/cuda/launch.cuh"

#if !defined(__CUDACC__)
#include <without_nvcc/mma.h>
#endif

namespace partita_rt::cuda {

#if defined(__CUDACC__)

__device__ inline uint32_t sharedAddress(const void *p) {
  return uint32_t(__cvta_generic_to_shared(p));
}

/// Starts copying `bytes` <= 16 bytes to shared memory, padded to 16 with zeros. Both addresses are
/// multiples of 16.
__device__ inline void copyAsync(void *shared, const void *global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(sharedAddress(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(bytes)
               : "memory");
}
/// Starts copying 4 bytes or, unless `inside`, zeros. Both addresses are multiples of 4.
__device__ inline void copyWordAsync(void *shared, const void *global, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(sharedAddress(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(inside ? 4 : 0)
               : "memory");
}
/// Ends a group of this thread's copies.
__device__ inline void commitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for all groups of this thread except the last kLeft; other threads see them after a
/// barrier.
template <int kLeft> __device__ inline void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

#else

using without_nvcc::commitCopies;
using without_nvcc::copyAsync;
using without_nvcc::copyWordAsync;
using without_nvcc::waitForCopies;

#endif

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_KERNELS_ASYNC_COPY_CUH
