// Constant arrays of an emitted program:
//
//     static __device__ const float table0[] = {1.0f, 2.0f};
//     stridedCopy(stream, to, Shape{1}, deviceTable(table0), Shape{1}, Shape{2}, 4);

#ifndef PARTITA_RT_CUDA_TABLE_CUH
#define PARTITA_RT_CUDA_TABLE_CUH

#include "partita_rt/cuda/launch.cuh"

namespace partita_rt::cuda {

/// Where a __device__ array stands.
template <typename T, size_t N> const T *deviceTable(const T (&table)[N]) {
  void *at = nullptr;
  if (cudaError_t error = cudaGetSymbolAddress(&at, table); error != cudaSuccess)
    fail("a constant array of the program: %s", cudaGetErrorString(error));
  return static_cast<const T *>(at);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_TABLE_CUH
