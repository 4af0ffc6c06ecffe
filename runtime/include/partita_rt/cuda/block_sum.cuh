// Sums a double over a block's threads, in a fixed order; or takes the largest.

#ifndef PARTITA_RT_CUDA_BLOCK_SUM_CUH
#define PARTITA_RT_CUDA_BLOCK_SUM_CUH

#include "partita_rt/cuda/launch.cuh"
#include "partita_rt/math.h"

namespace partita_rt::cuda {

/// Returns the sum over the block's kThreads threads in thread 0. Two calls need a barrier between
/// them.
template <int kThreads> __device__ double blockSum(double x) {
  __shared__ double space[kThreads / kWarp];
  for (int with = kWarp / 2; with > 0; with /= 2)
    x += __shfl_xor_sync(kAllLanes, x, with);
  if (threadIdx.x % kWarp == 0)
    space[threadIdx.x / kWarp] = x;
  __syncthreads();
  double sum = 0.0;
  if (threadIdx.x == 0)
    for (double each : space)
      sum += each;
  return sum;
}

/// Returns the largest of the block's numbers, none below 0, in thread 0. Two calls need a barrier between them.
template <int kThreads> __device__ double blockLargest(double x) {
  __shared__ double space[kThreads / kWarp];
  for (int with = kWarp / 2; with > 0; with /= 2)
    x = maximum(x, __shfl_xor_sync(kAllLanes, x, with));
  if (threadIdx.x % kWarp == 0)
    space[threadIdx.x / kWarp] = x;
  __syncthreads();
  double largest = 0.0;
  if (threadIdx.x == 0)
    for (double each : space)
      largest = maximum(largest, each);
  return largest;
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_BLOCK_SUM_CUH
