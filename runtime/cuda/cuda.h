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

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_CUDA_H
