// CUDA's runtime API for the host code of this folder.

#ifndef PARTITA_RT_CUDA_CUDA_H
#define PARTITA_RT_CUDA_CUDA_H

#include "partita_rt/types.h"

#include <cuda_runtime.h>

namespace partita_rt::cuda {

/// Throws Error with the failed call and CUDA's message: "cudaMalloc: out of memory".
inline void checkCuda(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    fail("%s: %s", what, cudaGetErrorString(error));
}

/// Returns the number of the current device's multiprocessors.
inline int64_t multiprocessors() {
  int device = 0, count = 0;
  checkCuda(cudaGetDevice(&device), "cudaGetDevice");
  checkCuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
            "cudaDeviceGetAttribute");
  return count;
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_CUDA_H
