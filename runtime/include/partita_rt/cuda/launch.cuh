// Included by every kernel's source, also by emitted ones: launches and dynamic shared memory, which
// are macros because CUDA has its own syntax for them.
//
// The sources also compile without nvcc, to run elsewhere. This needs two headers in the include
// folders: <cuda_runtime.h>, and <without_nvcc/launch.h> with the language of
// kernels (__global__, threadIdx, __syncthreads() and so on) and, in the namespace without_nvcc,
//
//     unsigned char *dynamicShared();    // this block's, 16-byte aligned
//     void launch(const char *name, void (*kernel)(...), dim3 grid, dim3 block, size_t shared,
//                 cudaStream_t, arguments...);    // its errors are cudaGetLastError's

#ifndef PARTITA_RT_CUDA_LAUNCH_CUH
#define PARTITA_RT_CUDA_LAUNCH_CUH

#include "partita_rt/cuda/kernel_times.h"
#include "partita_rt/cuda/shapes.h"
#include "partita_rt/cuda/stream.h"

#include <cuda_runtime.h>

#if !defined(__CUDACC__)
#include <without_nvcc/launch.h>
#endif

namespace partita_rt::cuda {

inline void checkLaunch(const char *name) {
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    fail("%s: %s", name, cudaGetErrorString(error));
}

} // namespace partita_rt::cuda

namespace partita_rt::cuda {

/// Requests more dynamic shared memory for a kernel, which CUDA demands beyond 48 KiB including
/// static shared memory. No kernel here has more than 16 KiB of static shared memory.
inline void allowShared(const void *kernel, const char *name, size_t bytes) {
  if (bytes <= 32 * 1024)
    return;
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
  if (error != cudaSuccess)
    fail("%s: a block of this GPU cannot have the %zu bytes of shared memory that it needs: %s",
         name, bytes, cudaGetErrorString(error));
}

} // namespace partita_rt::cuda

#define PARTITA_RT_TIMED(kernel, stream)                                                           \
  ::partita_rt::cuda::Timed timed((stream), #kernel, reinterpret_cast<const void *>(kernel))

#if defined(__CUDACC__)

/// Declares `unsigned char *name`: this block's dynamic shared memory, 16-byte aligned.
#define PARTITA_RT_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]

#define PARTITA_RT_LAUNCH(kernel, grid, block, shared, stream, ...)                                \
  do {                                                                                             \
    PARTITA_RT_TIMED(kernel, stream);                                                              \
    ::partita_rt::cuda::allowShared(reinterpret_cast<const void *>(kernel), #kernel, shared);      \
    kernel<<<grid, block, shared, (stream).handle>>>(__VA_ARGS__);                                 \
    ::partita_rt::cuda::checkLaunch(#kernel);                                                      \
  } while (0)

#else

#define PARTITA_RT_DYNAMIC_SHARED(name) unsigned char *name = ::without_nvcc::dynamicShared()
#define PARTITA_RT_LAUNCH(kernel, grid, block, shared, stream, ...)                                \
  do {                                                                                             \
    PARTITA_RT_TIMED(kernel, stream);                                                              \
    ::partita_rt::cuda::allowShared(reinterpret_cast<const void *>(kernel), #kernel, shared);      \
    ::without_nvcc::launch(#kernel, kernel, grid, block, shared, (stream).handle, __VA_ARGS__);    \
    ::partita_rt::cuda::checkLaunch(#kernel);                                                      \
  } while (0)

#endif

namespace partita_rt::cuda {

constexpr unsigned kAllLanes = 0xffffffffu;

/// Returns the stream's scratch memory as `T`s. `what` names the kernel that needs it.
template <typename T> T *scratchOf(const Stream &stream, int64_t bytes, const char *what) {
  if (bytes > stream.scratchBytes)
    fail("%s: %lld bytes of scratch memory, but the stream has %lld", what, (long long)bytes,
         (long long)stream.scratchBytes);
  return static_cast<T *>(stream.scratch);
}

/// Returns a one-dimensional grid of that many blocks, at most 2^31 - 1.
inline dim3 gridOf(int64_t blocks) {
  if (blocks > 0x7fffffff)
    fail("a kernel of %lld blocks", (long long)blocks);
  return dim3(unsigned(blocks));
}

__device__ inline int64_t globalThread() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_LAUNCH_CUH
