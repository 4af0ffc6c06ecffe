// The hash of replicas (partita_rt/replica_hash.h): a block sums 8192 words and adds its sum to the
// run's by one atomic operation. Integers have no order of summation, so the bits are the same in
// every run, and the CPU's. One read.

#include "partita_rt/cuda/kernels.h"

#include "partita_rt/cuda/launch.cuh"
#include "partita_rt/replica_hash.h"

namespace partita_rt::cuda {

namespace {

using Sum = unsigned long long; // as atomicAdd takes it
constexpr int kThreads = 256, kWordsPerThread = 32;
constexpr int64_t kWordsPerBlock = kThreads * kWordsPerThread;

__global__ void __launch_bounds__(kThreads)
    sumReplicaWords(Sum *sum, const unsigned char *data, int64_t bytes, uint64_t firstWord) {
  __shared__ Sum sums[kThreads / kWarp];
  bool aligned = reinterpret_cast<uintptr_t>(data) % kHashWord == 0;
  int64_t complete = aligned ? bytes / kHashWord : 0, all = hashWords(bytes);
  int64_t first = int64_t(blockIdx.x) * kWordsPerBlock + threadIdx.x;
  Sum mine = 0;
#pragma unroll 8 // as many loads are in flight
  for (int k = 0; k < kWordsPerThread; ++k) {
    int64_t i = first + int64_t(k) * kThreads;
    if (i < all)
      mine += Sum(i < complete ? reinterpret_cast<const uint32_t *>(data)[i]
                               : hashWord(data, bytes, i)) *
              hashFactor(firstWord + uint64_t(i));
  }
  for (int with = kWarp / 2; with > 0; with /= 2)
    mine += __shfl_xor_sync(kAllLanes, mine, with);
  if (threadIdx.x % kWarp == 0)
    sums[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x > 0)
    return;
  for (int warp = 1; warp < kThreads / kWarp; ++warp)
    mine += sums[warp];
  atomicAdd(sum, mine);
}

} // namespace

void addReplicaHash(const Stream &stream, uint64_t *sum, const void *data, int64_t bytes,
                    uint64_t firstWord) {
  if (bytes > 0)
    PARTITA_RT_LAUNCH(sumReplicaWords, gridOf(ceilDiv(hashWords(bytes), kWordsPerBlock)), kThreads,
                      0, stream, reinterpret_cast<Sum *>(sum),
                      static_cast<const unsigned char *>(data), bytes, firstWord);
}

} // namespace partita_rt::cuda
