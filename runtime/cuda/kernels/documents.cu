// The documents of packed sequences: one block per sequence, which passes over it 1,024 positions at
// a time. A position's start is the max of the starts up to it. Reads 8 bytes per position (4 of
// 32-bit ids), writes 4.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/device.cuh"

namespace partita_rt::cuda {

namespace {

constexpr int kThreads = 1024, kWarps = kThreads / kWarp;

/// Returns the max of this thread's x and of those of the threads before it. `ofWarps` is shared.
template <typename T> __device__ T largestSoFar(T x, T (&ofWarps)[kWarps]) {
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  for (int with = 1; with < kWarp; with *= 2) {
    T other = __shfl_up_sync(kAllLanes, x, unsigned(with));
    x = lane >= with && other > x ? other : x;
  }
  __syncthreads(); // all threads have read the last result
  if (lane == kWarp - 1)
    ofWarps[warp] = x;
  __syncthreads();
  for (int w = 0; w < warp; ++w)
    x = ofWarps[w] > x ? ofWarps[w] : x;
  return x;
}

/// Reports an id that was seen before the document in front of position i.
template <typename Id>
__device__ void checkIsNew(Fault *fault, const Id *ids, int64_t i, int64_t row) {
  for (int64_t j = 0; j < i; ++j)
    if (ids[j] == ids[i])
      return report(fault, Fault::Document, int64_t(ids[i]), i, row, 0);
}

template <typename Id>
__global__ void __launch_bounds__(kThreads)
    findDocuments(int32_t *starts, const Id *ids, int64_t width, Fault *fault) {
  __shared__ int32_t startsOfWarps[kWarps];
  __shared__ Id idsOfWarps[kWarps];
  __shared__ int32_t lastStart;
  __shared__ Id lastLargest;
  int64_t row = blockIdx.x;
  starts += row * width;
  ids += row * width;
  for (int64_t tile = 0; tile < width; tile += kThreads) { // for all threads of the block
    int64_t i = tile + threadIdx.x, at = i < width ? i : width - 1;
    bool begins = at == 0 || ids[at] != ids[at - 1];
    int32_t start = largestSoFar<int32_t>(begins ? int32_t(at) : 0, startsOfWarps);
    // Of the ids before this one.
    Id largest = largestSoFar<Id>(ids[at > 0 ? at - 1 : 0], idsOfWarps);
    if (tile > 0) {
      start = lastStart > start ? lastStart : start;
      largest = lastLargest > largest ? lastLargest : largest;
    }
    // An id greater than all before it is new.
    if (i < width && i > 0 && begins && ids[i] <= largest)
      checkIsNew(fault, ids, i, row);
    if (i < width)
      starts[i] = start;
    __syncthreads(); // all threads have read the last tile's
    if (threadIdx.x == kThreads - 1) {
      lastStart = start;
      lastLargest = largest;
    }
    __syncthreads();
  }
}

template <typename Id>
__global__ void __launch_bounds__(kThreads)
    findDocumentsAfter(Id token, int32_t *starts, const Id *ids, int64_t width) {
  __shared__ int32_t startsOfWarps[kWarps];
  __shared__ int32_t lastStart;
  int64_t row = blockIdx.x;
  starts += row * width;
  ids += row * width;
  for (int64_t tile = 0; tile < width; tile += kThreads) { // for all threads of the block
    int64_t i = tile + threadIdx.x;
    bool begins = i > 0 && i < width && ids[i - 1] == token;
    int32_t start = largestSoFar<int32_t>(begins ? int32_t(i) : 0, startsOfWarps);
    if (tile > 0)
      start = lastStart > start ? lastStart : start;
    if (i < width)
      starts[i] = start;
    __syncthreads(); // all threads have read the last tile's
    if (threadIdx.x == kThreads - 1)
      lastStart = start;
    __syncthreads();
  }
}

} // namespace

template <typename Id>
void documentStarts(const Stream &stream, int32_t *starts, const Id *ids, int64_t rows,
                    int64_t width) {
  if (rows * width > 0)
    PARTITA_RT_LAUNCH(findDocuments<Id>, gridOf(rows), kThreads, 0, stream, starts, ids, width,
                      stream.fault);
}
template void documentStarts(const Stream &, int32_t *, const int32_t *, int64_t, int64_t);
template void documentStarts(const Stream &, int32_t *, const int64_t *, int64_t, int64_t);

template <typename Id>
void documentStartsAfter(const Stream &stream, int64_t token, int32_t *starts, const Id *ids,
                         int64_t rows, int64_t width) {
  if (rows * width > 0)
    PARTITA_RT_LAUNCH(findDocumentsAfter<Id>, gridOf(rows), kThreads, 0, stream, Id(token), starts,
                      ids, width);
}
template void documentStartsAfter(const Stream &, int64_t, int32_t *, const int32_t *, int64_t,
                                  int64_t);
template void documentStartsAfter(const Stream &, int64_t, int32_t *, const int64_t *, int64_t,
                                  int64_t);

} // namespace partita_rt::cuda
