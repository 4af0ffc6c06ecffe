// Sums over rows in two launches: blocks of rows make partial sums in float, in scratch memory, and
// these are added up in order. Nothing is added by atomics, so nothing depends on chance.

#ifndef PARTITA_RT_CUDA_COLUMN_SUM_CUH
#define PARTITA_RT_CUDA_COLUMN_SUM_CUH

#include "cuda/kernels/row.cuh"

namespace partita_rt::cuda {

/// kPack columns' sums of one row of threads.
using ColumnPack = Pack<float, kPack>;
/// What a block of such rows adds up in.
PARTITA_RT_HOST_DEVICE constexpr int rowSumSpace(int threads, int rows) {
  return (rows - 1) * threads;
}

/// Rows of the block add up: the sums of the y-th row of threads to those of the first, in order.
/// Every thread has kPack columns and comes here; `space` of rowSumSpace is free again behind it.
__device__ inline void addRowsOfBlock(float (&sums)[kPack], ColumnPack *space) {
  if (blockDim.y == 1)
    return;
  ColumnPack row;
  if (threadIdx.y > 0) {
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      row.values[i] = sums[i];
    copyWords(space[(threadIdx.y - 1) * blockDim.x + threadIdx.x], row);
  }
  __syncthreads();
  if (threadIdx.y == 0)
#pragma unroll 1
    for (unsigned from = 0; from + 1 < blockDim.y; ++from) {
      copyWords(row, space[from * blockDim.x + threadIdx.x]);
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        sums[i] += row.values[i];
    }
  __syncthreads();
}

/// Partial sums of the columns of what `element(row, first, x)` makes: the pack at column `first`
/// of a row. Block (x, y) has kColumnPacks packs of columns and, of the rows, every gridDim.y-th
/// group of kColumnRows. partials[gridDim.y, width].
template <typename Element>
__device__ inline void partialColumns(float *partials, int64_t rows, int64_t width,
                                      Element element) {
  __shared__ ColumnPack space[rowSumSpace(kColumnPacks, kColumnRows)];
  int64_t first = (int64_t(blockIdx.x) * kColumnPacks + threadIdx.x) * kPack;
  float sums[kPack] = {};
  if (first < width)
    for (int64_t row = int64_t(blockIdx.y) * kColumnRows + threadIdx.y; row < rows;
         row += int64_t(gridDim.y) * kColumnRows) {
      float x[kPack];
      element(row, first, x);
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        sums[i] += x[i];
    }
  addRowsOfBlock(sums, space);
  if (threadIdx.y == 0 && first < width)
    store(partials + int64_t(blockIdx.y) * width + first, sums, width - first);
}

/// The grid of partialColumns; a block is {kColumnPacks, kColumnRows}.
inline dim3 columnGrid(int64_t rows, int64_t width) {
  return dim3(gridOf(ceilDiv(width, kColumnPacks * kPack)).x, unsigned(columnBlocks(rows, width)));
}

/// sums += rows [threadIdx.y, parts) of partials, every kPartRows-th, in order; kAtOnce are loaded
/// before the first is added.
__device__ inline void addParts(float (&sums)[kPack], const float *partials, int64_t parts,
                                int64_t width, int64_t first) {
  constexpr int kAtOnce = 4;
  for (int64_t part = threadIdx.y; part < parts; part += kAtOnce * kPartRows) {
    Pack<float, kPack> x[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      int64_t row = part + j * kPartRows;
      loadBits(x[j], partials + row * width + first, row < parts ? width - first : 0);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        sums[i] += x[j].values[i];
  }
}

/// y[width] (+)= the sums of partials[parts, width], divided, in order: kPartRows runs of every
/// kPartRows-th part, then these. Blocks of grid.y = 1, where there are such, do the same for `y1`
/// with the partials behind. Moves 4 * parts * width bytes for each.
template <typename T>
__global__ void __launch_bounds__(kPartPacks *kPartRows)
    addPartials(FloatOrArray<T> y0, FloatOrArray<T> y1, const float *partials, int64_t parts,
                int64_t width, float divisor, Write write) {
  __shared__ ColumnPack space[rowSumSpace(kPartPacks, kPartRows)];
  FloatOrArray<T> y = y0;
  if (blockIdx.y == 1)
    y = y1;
  if (!y) // the whole block
    return;
  int64_t first = (int64_t(blockIdx.x) * kPartPacks + threadIdx.x) * kPack;
  float sums[kPack] = {};
  if (first < width)
    addParts(sums, partials + blockIdx.y * parts * width, parts, width, first);
  addRowsOfBlock(sums, space);
  if (threadIdx.y != 0 || first >= width)
    return;
  float before[kPack] = {};
  if (write == Write::Add)
    y.loadAt(before, first, width - first);
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    sums[i] = before[i] + sums[i] / divisor;
  y.storeAt(first, sums, width - first);
}

/// partials[2, parts, width] to y0 and y1, or partials[parts, width] to y0; null: not wanted.
template <typename T>
void launchAddPartials(const Stream &stream, FloatOrArray<T> y0, FloatOrArray<T> y1,
                       const float *partials, int64_t parts, int64_t width, Write write,
                       float divisor = 1.0f) {
  dim3 grid(gridOf(ceilDiv(width, kPartPacks * kPack)).x, y1.data ? 2 : 1);
  PARTITA_RT_LAUNCH(addPartials<T>, grid, dim3(kPartPacks, kPartRows), 0, stream, y0, y1, partials,
                    parts, width, divisor, write);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_COLUMN_SUM_CUH
