// Counts the labels that are not ignored: one block, whose threads count every 1024th. Moves 8
// bytes per label.

#include "partita_rt/cuda/kernels.h"

#include "partita_rt/cuda/launch.cuh"

namespace partita_rt::cuda {

namespace {

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads)
    countLabelsOnce(float *count, const int64_t *labels, int64_t n, int64_t ignoreIndex) {
  __shared__ int64_t counts[kThreads / kWarp];
  int mine = 0;
#pragma unroll 16 // as many loads are in flight
  for (int64_t i = threadIdx.x; i < n; i += kThreads)
    mine += labels[i] != ignoreIndex ? 1 : 0;
  for (int with = kWarp / 2; with > 0; with /= 2)
    mine += __shfl_xor_sync(kAllLanes, mine, with);
  if (threadIdx.x % kWarp == 0)
    counts[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x > 0)
    return;
  int64_t all = 0;
  for (int64_t each : counts)
    all += each;
  *count = float(all);
}

} // namespace

void countLabels(const Stream &stream, float *count, const int64_t *labels, int64_t n,
                 int64_t ignoreIndex) {
  PARTITA_RT_LAUNCH(countLabelsOnce, 1, kThreads, 0, stream, count, labels, n, ignoreIndex);
}

} // namespace partita_rt::cuda
