// Sorts additions by their target row, stably: a radix sort by 8-bit digits (three launches per
// digit), without atomic additions whose order could affect the result.
//
//   count    per block and digit, the number of keys (integers: any order is the same)
//   scan     the start of each block's keys of each digit: exclusive sums over digits, then blocks
//   scatter  a block takes 256 keys at a time, in order. A key's position among them is the number
//            of equal digits before it: in its warp by votes, in earlier warps by counting
//
// Keys and numbers move 16 bytes per addition and digit.

#ifndef PARTITA_RT_CUDA_KERNELS_SORT_ROWS_CUH
#define PARTITA_RT_CUDA_KERNELS_SORT_ROWS_CUH

#include "partita_rt/cuda/launch.cuh"

namespace partita_rt::cuda {

constexpr int kDigits = 256, kSortThreads = 256; // one thread per digit

struct Additions {
  uint32_t *rows;   ///< the target row; the number of rows: none
  int32_t *numbers; ///< the source row
};

__device__ inline int digitOf(uint32_t row, int shift) { return int(row >> shift) % kDigits; }

/// counts[kDigits, gridDim].
static __global__ void __launch_bounds__(kSortThreads)
    countDigits(int32_t *counts, const uint32_t *rows, int64_t n, int shift) {
  __shared__ int32_t of[kDigits];
  of[threadIdx.x] = 0;
  __syncthreads();
  int64_t begin = int64_t(blockIdx.x) * kSortBlock, end = least(begin + kSortBlock, n);
  for (int64_t i = begin + threadIdx.x; i < end; i += kSortThreads)
    atomicAdd(&of[digitOf(rows[i], shift)], 1);
  __syncthreads();
  counts[int64_t(threadIdx.x) * gridDim.x + blockIdx.x] = of[threadIdx.x];
}

constexpr int kScanThreads = 1024, kScanPack = 4;

/// Computes exclusive sums of values[n], in place, in one block: 4096 at a time, four adjacent ones
/// per thread. n is a multiple of four, as kDigits is.
static __global__ void __launch_bounds__(kScanThreads) scanCounts(int32_t *values, int64_t n) {
  __shared__ uint32_t warps[kScanThreads / kWarp];
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  uint32_t carry = 0;
  auto read = [&](int64_t first) {
    int64_t i = first + int64_t(threadIdx.x) * kScanPack;
    return i < n ? *reinterpret_cast<const uint4 *>(values + i) : uint4{0, 0, 0, 0};
  };
  uint4 next = read(0);
  for (int64_t first = 0; first < n; first += kScanThreads * kScanPack) {
    uint4 each = next;
    next = read(first + kScanThreads * kScanPack); // in flight while these are added up
    uint32_t own = each.x + each.y + each.z + each.w, sum = own;
    for (int by = 1; by < kWarp; by *= 2) {
      uint32_t before = __shfl_up_sync(kAllLanes, sum, by);
      sum += lane >= by ? before : 0;
    }
    if (lane == kWarp - 1)
      warps[warp] = sum;
    __syncthreads();
    uint32_t before = carry + sum - own;
    for (int w = 0; w < kScanThreads / kWarp; ++w) {
      before += w < warp ? warps[w] : 0;
      carry += warps[w];
    }
    int64_t i = first + int64_t(threadIdx.x) * kScanPack;
    if (i < n)
      *reinterpret_cast<uint4 *>(values + i) = uint4{
          before, before + each.x, before + each.x + each.y, before + each.x + each.y + each.z};
    __syncthreads();
  }
}

static __global__ void __launch_bounds__(kSortThreads)
    scatterDigits(Additions to, Additions from, const int32_t *begins, int64_t n, int shift) {
  constexpr int kWarps = kSortThreads / kWarp;
  __shared__ int32_t next[kDigits], ofWarp[kWarps][kDigits];
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  next[threadIdx.x] = begins[int64_t(threadIdx.x) * gridDim.x + blockIdx.x];
  int64_t begin = int64_t(blockIdx.x) * kSortBlock, end = least(begin + kSortBlock, n);
  for (int64_t first = begin; first < end; first += kSortThreads) {
    for (int w = 0; w < kWarps; ++w)
      ofWarp[w][threadIdx.x] = 0;
    __syncthreads();
    int64_t i = first + threadIdx.x;
    bool here = i < end;
    uint32_t row = here ? from.rows[i] : 0;
    int digit = digitOf(row, shift);
    unsigned equal = __ballot_sync(kAllLanes, here);
    for (int bit = 1; bit < kDigits; bit *= 2) {
      bool mine = (digit & bit) != 0;
      unsigned with = __ballot_sync(kAllLanes, mine);
      equal &= mine ? with : ~with;
    }
    int before = __popc(equal & ((1u << lane) - 1));
    if (here && before == 0)
      ofWarp[warp][digit] = __popc(equal);
    __syncthreads();
    int32_t sum = next[threadIdx.x]; // this thread's digit: the start of each warp's keys
    for (int w = 0; w < kWarps; ++w) {
      int32_t count = ofWarp[w][threadIdx.x];
      ofWarp[w][threadIdx.x] = sum;
      sum += count;
    }
    next[threadIdx.x] = sum;
    __syncthreads();
    if (here) {
      int32_t at = ofWarp[warp][digit] + before;
      to.rows[at] = row;
      to.numbers[at] = from.numbers[i];
    }
    __syncthreads();
  }
}

/// Sorts n additions by rows below `bound`, using `other` as scratch; returns the one of the two
/// that has the result.
inline Additions sortByRow(const Stream &stream, Additions additions, Additions other,
                           int32_t *counts, int64_t n, uint64_t bound) {
  int64_t blocks = ceilDiv(n, kSortBlock);
  for (int shift = 0; shift < 32 && bound >> shift > 0; shift += 8) {
    PARTITA_RT_LAUNCH(countDigits, gridOf(blocks), kSortThreads, 0, stream, counts, additions.rows,
                      n, shift);
    PARTITA_RT_LAUNCH(scanCounts, 1, kScanThreads, 0, stream, counts, kDigits * blocks);
    PARTITA_RT_LAUNCH(scatterDigits, gridOf(blocks), kSortThreads, 0, stream, other, additions,
                      counts, n, shift);
    Additions sorted = other;
    other = additions;
    additions = sorted;
  }
  return additions;
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_KERNELS_SORT_ROWS_CUH
