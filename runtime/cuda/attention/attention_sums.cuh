// Sums of the rows of dq, dk and dv: the gradients of biases of the projections to q, k and v.
// Kernels on tensor cores have the gradients in registers and leave partial sums, of those before
// they are rounded, in scratch memory (AttentionSums, shapes.h); attention_sums.cu adds these, and
// reads what other kernels have stored.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_SUMS_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_SUMS_CUH

#include "cuda/attention/attention.cuh"

namespace partita_rt::cuda {

PARTITA_RT_HOST_DEVICE inline AttentionSums sumsOf(const AttentionShape &shape) {
  return {shape.batch,   shape.heads,    shape.sequence, shape.keySequence,
          shape.headDim, shape.valueDim, shape.groups};
}

/// sums = those of the partial sums that the kernels on tensor cores have stored.
template <typename T>
void addPartialRowSums(const Stream &stream, const RowSumsOf<T> &sums, const float *partials,
                       const AttentionShape &shape);
/// sums = those of the rows of dq, dk and dv, in the order and with the bits of columnSum of a tensor
/// in which they lie side by side. Scratch: `partials`, AttentionSums::scratch.
template <typename T>
void sumStoredRows(const Stream &stream, const RowSumsOf<T> &sums, float *partials,
                   const AttentionShape &shape, const HeadsOf<T> &dq, const HeadsOf<T> &dk,
                   const HeadsOf<T> &dv);

/// Where a call's kernels leave partial sums, and the first columns of dk and dv in a row of them; computed by the
/// host, as it takes divisions of 64 bits. No data: they leave none.
struct PartialSums {
  float *data = nullptr;
  int64_t columns = 0, keyColumn = 0, valueColumn = 0;
  PartialSums() = default;
  PartialSums(float *data, const AttentionSums &sums)
      : data(data), columns(sums.columns()), keyColumn(sums.keyColumn()),
        valueColumn(sums.valueColumn()) {}
  PARTITA_RT_HOST_DEVICE explicit operator bool() const { return data; }
};

/// Writes the sums of the columns of a warp's rows of C to `columns`, [kColumns * 8] of shared memory. Lanes that
/// share columns halve them, as long as their number is even: each passes one half on and keeps the sums of the
/// other. The head has `count` rows, the warp those from `first` on. kZeros: rows behind them are zeros.
template <bool kZeros = false, int kTilesA, int kColumns>
__device__ inline void sumColumnsOfC(float *columns, const float (&c)[kTilesA][kColumns][4],
                                     int first, int count) {
  int lane = int(threadIdx.x) % kWarp, row = first + lane / 4;
  float sums[2 * kColumns];
#pragma unroll
  for (int i = 0; i < 2 * kColumns; ++i) {
    sums[i] = kZeros || row < count ? c[0][i / 2][i % 2] : 0.0f;
#pragma unroll
    for (int t = 1; t < 2 * kTilesA; ++t)
      if (kZeros || row + 8 * t < count)
        sums[i] += c[t / 2][i / 2][t % 2 * 2 + i % 2];
  }
  int kept = 2 * kColumns, begin = 0; // the lane's sums are those of [begin, begin + kept)
#pragma unroll
  for (int with = kWarp / 2; with >= 4; with /= 2) {
    if (kept % 2 != 0) {
#pragma unroll
      for (int i = 0; i < kColumns; ++i)
        if (i < kept)
          sums[i] += __shfl_xor_sync(kAllLanes, sums[i], with);
      continue;
    }
    kept /= 2;
    bool upper = lane & with;
#pragma unroll
    for (int i = 0; i < kColumns; ++i)
      if (i < kept) {
        float own = upper ? sums[i + kept] : sums[i], other = upper ? sums[i] : sums[i + kept];
        sums[i] = own + __shfl_xor_sync(kAllLanes, other, with);
      }
    begin += upper ? kept : 0;
  }
#pragma unroll
  for (int i = 0; i < kColumns; ++i)
    if (i < kept) {
      int at = begin + i;
      columns[at / 2 * 8 + lane % 4 * 2 + at % 2] = sums[i];
    }
}

/// Adds the sums of a block's warps, [kWarps, D] in shared memory, in order, and stores a partial sum for
/// each kAttentionSumRows rows. Of a head of `width` elements with `count` rows in sequence b; the block has
/// those from `first` on, kRowsOfWarp for each warp. partials: of the head's first column, `pitch` apart.
template <int D, int kWarps, int kRowsOfWarp>
__device__ inline void storePartialSums(float *partials, int64_t pitch, const float *ofWarps,
                                        int64_t b, int first, int count, int width) {
  constexpr int kTogether = kAttentionSumRows / kRowsOfWarp, kParts = kWarps / kTogether;
  constexpr int kThreads = kWarps * kWarp, kSumRows = kAttentionSumRows;
  static_assert(kTogether * kRowsOfWarp == kSumRows && kParts * kTogether == kWarps);
  partials += (b * ((count + kSumRows - 1) / kSumRows) + first / kSumRows) * pitch;
#pragma unroll
  for (int begin = 0; begin < kParts * D; begin += kThreads) {
    int i = begin + int(threadIdx.x), own = i / D, column = i % D;
    if (i >= kParts * D || column >= width || first + own * kSumRows >= count)
      continue;
    float sum = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kTogether; ++warp)
      sum += ofWarps[(own * kTogether + warp) * D + column];
    partials[own * pitch + column] = sum;
  }
}

/// Stores the partial sums of a tile of a block's dq. `space`: [kWarps, D] of shared memory that nobody uses any
/// more. first: the first of the block's rows; all threads must call this.
template <int kWarps, int kTilesA, int kColumns, typename Call>
__device__ inline void storeQuerySums(const Call &call, const float (&dq)[kTilesA][kColumns][4],
                                      float *space, int first) {
  constexpr int D = 8 * kColumns, kRows = 16 * kTilesA;
  int64_t h = blockIdx.y, b = blockIdx.z;
  int warp = int(threadIdx.x) / kWarp, count = int(call.shape.sequence);
  int width = int(call.shape.headDim);
  sumColumnsOfC(space + warp * D, dq, first + warp * kRows, count);
  __syncthreads();
  storePartialSums<D, kWarps, kRows>(call.sums.data + h * width, call.sums.columns, space, b, first,
                                     count, width);
}

/// The same of dk and dv. `space`: [2, kWarps, D].
template <int kWarps, bool kZeros = false, int kTilesA, int kColumns, typename Call>
__device__ inline void storeKeySums(const Call &call, const float (&dk)[kTilesA][kColumns][4],
                                    const float (&dv)[kTilesA][kColumns][4], float *space,
                                    int64_t b, int64_t kv, int first) {
  constexpr int D = 8 * kColumns, kRows = 16 * kTilesA;
  const PartialSums &sums = call.sums;
  int warp = int(threadIdx.x) / kWarp, count = int(call.shape.keySequence);
  int width = int(call.shape.headDim), valueWidth = int(call.shape.valueDim);
  float *ofValues = space + kWarps * D;
  sumColumnsOfC<kZeros>(space + warp * D, dk, first + warp * kRows, count);
  sumColumnsOfC<kZeros>(ofValues + warp * D, dv, first + warp * kRows, count);
  __syncthreads();
  storePartialSums<D, kWarps, kRows>(sums.data + sums.keyColumn + kv * width, sums.columns, space,
                                     b, first, count, width);
  storePartialSums<D, kWarps, kRows>(sums.data + sums.valueColumn + kv * valueWidth, sums.columns,
                                     ofValues, b, first, count, valueWidth);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_SUMS_CUH
