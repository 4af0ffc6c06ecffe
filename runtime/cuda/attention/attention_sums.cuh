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

/// Writes the sums of the columns of a warp's rows of C to `columns`, [kColumns * 8] of shared memory:
/// in registers, then in a butterfly. The head has `count` rows, the warp those from `first` on.
template <int kTilesA, int kColumns>
__device__ inline void sumColumnsOfC(float *columns, const float (&c)[kTilesA][kColumns][4],
                                     int first, int count) {
  int lane = int(threadIdx.x) % kWarp, row = first + lane / 4;
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float sum = 0.0f;
#pragma unroll
      for (int t = 0; t < kTilesA; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          if (row + 16 * t + 8 * half < count)
            sum += c[t][j][2 * half + e];
#pragma unroll
      for (int with = 4; with < kWarp; with *= 2)
        sum += __shfl_xor_sync(kAllLanes, sum, with);
      if (lane < 4)
        columns[8 * j + 2 * lane + e] = sum;
    }
}

/// Adds the sums of a block's warps, [kWarps, D] in shared memory, in order, and stores a partial sum for
/// each kAttentionSumRows rows. Of a head of `width` elements with `count` rows in sequence b; the block has
/// those from `first` on, kRowsOfWarp for each warp. partials: of the head's first column, `pitch` apart.
template <int D, int kWarps, int kRowsOfWarp>
__device__ inline void storePartialSums(float *partials, int64_t pitch, const float *ofWarps,
                                        int64_t b, int first, int count, int width) {
  constexpr int kTogether = kAttentionSumRows / kRowsOfWarp, kParts = kWarps / kTogether;
  static_assert(kTogether * kRowsOfWarp == kAttentionSumRows && kParts * kTogether == kWarps);
  int64_t part = b * ceilDiv(count, kAttentionSumRows) + first / kAttentionSumRows;
  for (int i = int(threadIdx.x); i < kParts * D; i += kWarps * kWarp) {
    int own = i / D, column = i % D;
    if (column >= width || first + own * kAttentionSumRows >= count)
      continue;
    float sum = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kTogether; ++warp)
      sum += ofWarps[(own * kTogether + warp) * D + column];
    partials[(part + own) * pitch + column] = sum;
  }
}

/// Stores the partial sums of a tile of a block's dq. `space`: [kWarps, D] of shared memory that nobody uses any
/// more. first: the first of the block's rows; all threads must call this.
template <int kWarps, int kTilesA, int kColumns, typename Call>
__device__ inline void storeQuerySums(const Call &call, const float (&dq)[kTilesA][kColumns][4],
                                      float *space, int first) {
  constexpr int D = 8 * kColumns, kRows = 16 * kTilesA;
  AttentionSums sums = sumsOf(call.shape);
  int64_t h = blockIdx.y, b = blockIdx.z;
  int warp = int(threadIdx.x) / kWarp, count = int(sums.sequence), width = int(sums.headDim);
  sumColumnsOfC(space + warp * D, dq, first + warp * kRows, count);
  __syncthreads();
  storePartialSums<D, kWarps, kRows>(call.sums + h * width, sums.columns(), space, b, first, count,
                                     width);
}

/// The same of dk and dv. `space`: [2, kWarps, D].
template <int kWarps, int kTilesA, int kColumns, typename Call>
__device__ inline void storeKeySums(const Call &call, const float (&dk)[kTilesA][kColumns][4],
                                    const float (&dv)[kTilesA][kColumns][4], float *space,
                                    int first) {
  constexpr int D = 8 * kColumns, kRows = 16 * kTilesA;
  AttentionSums sums = sumsOf(call.shape);
  int64_t kv = blockIdx.y, b = blockIdx.z;
  int warp = int(threadIdx.x) / kWarp, count = int(sums.keySequence);
  float *ofValues = space + kWarps * D;
  sumColumnsOfC(space + warp * D, dk, first + warp * kRows, count);
  sumColumnsOfC(ofValues + warp * D, dv, first + warp * kRows, count);
  __syncthreads();
  storePartialSums<D, kWarps, kRows>(call.sums + sums.keyColumn() + kv * sums.headDim,
                                     sums.columns(), space, b, first, count, int(sums.headDim));
  storePartialSums<D, kWarps, kRows>(call.sums + sums.valueColumn() + kv * sums.valueDim,
                                     sums.columns(), ofValues, b, first, count, int(sums.valueDim));
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_SUMS_CUH
