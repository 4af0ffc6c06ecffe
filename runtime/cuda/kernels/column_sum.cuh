// Sums over rows in two launches: blocks of rows compute partial sums in float, in scratch memory,
// which are then added in order. Rows that one block handles take one launch, and no scratch memory. There are no atomic additions, so the results are deterministic.

#ifndef PARTITA_RT_CUDA_KERNELS_COLUMN_SUM_CUH
#define PARTITA_RT_CUDA_KERNELS_COLUMN_SUM_CUH

#include "cuda/kernels/row.cuh"

namespace partita_rt::cuda {

/// The sums of kPack columns in one row of threads.
using ColumnPack = Pack<float, kPack>;
/// Shared memory in which a block adds such rows.
PARTITA_RT_HOST_DEVICE constexpr int rowSumSpace(int threads, int rows) {
  return (rows - 1) * threads;
}

/// Adds the sums of the block's rows of threads, in order, to those of the first row. All threads
/// must call this, with kPack columns each; `space`, of rowSumSpace, may be reused afterwards.
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

/// Calls finish(first, sums) with sums of the columns that `element(row, first, x)` produces: the pack at
/// column `first` of a row. Block (x, y) has kColumnPacks packs of columns and, of the rows, every
/// gridDim.y-th group of kColumnRows.
template <typename Element, typename Finish>
__device__ inline void columnsOfBlock(int64_t rows, int64_t width, Element element, Finish finish) {
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
    finish(first, sums);
}

/// Computes partial sums of such columns: partials[gridDim.y, width].
template <typename Element>
__device__ inline void partialColumns(float *partials, int64_t rows, int64_t width,
                                      Element element) {
  columnsOfBlock(rows, width, element, [&](int64_t first, const float (&sums)[kPack]) {
    store(partials + int64_t(blockIdx.y) * width + first, sums, width - first);
  });
}

/// Returns the grid of columnsOfBlock; a block is {kColumnPacks, kColumnRows}.
inline dim3 columnGrid(int64_t rows, int64_t width) {
  return dim3(gridOf(ceilDiv(width, kColumnPacks * kPack)).x, unsigned(columnBlocks(rows, width)));
}

/// sums += rows [threadIdx.y, parts) of partials, every kPartRows-th, in order; kAtOnce are loaded
/// before the first is added. Rows are `pitch` apart.
__device__ inline void addParts(float (&sums)[kPack], const float *partials, int64_t parts,
                                int64_t width, int64_t pitch, int64_t first) {
  constexpr int kAtOnce = 8;
  for (int64_t part = threadIdx.y; part < parts; part += kAtOnce * kPartRows) {
    Pack<float, kPack> x[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      int64_t row = part + j * kPartRows;
      loadBits(x[j], partials + row * pitch + first, row < parts ? width - first : 0);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        sums[i] += x[j].values[i];
  }
}

/// The destinations of column sums: at most kMost arrays, of which null ones are not computed.
template <typename T, int kMost> struct PartialSumArrays {
  FloatOrArray<T> y[kMost];

  /// Counts up to the last array that is computed.
  int count() const {
    int found = 0;
    for (int i = 0; i < kMost; ++i)
      if (y[i].data)
        found = i + 1;
    return found;
  }
  __device__ FloatOrArray<T> operator[](unsigned number) const {
    FloatOrArray<T> found = y[0];
#pragma unroll
    for (int i = 1; i < kMost; ++i)
      if (number == unsigned(i))
        found = y[i];
    return found;
  }
};

/// Each y[width] (+)= the sums of its partials[parts, width], in rows of `pitch`, divided, in a fixed order:
/// kPartRows runs of every kPartRows-th part; a warp's runs in a butterfly; the warps' in order. Blocks of
/// grid.y = n have the n-th array. Moves 4 * parts * width bytes per array.
template <typename T, int kMost>
__global__ void __launch_bounds__(kPartPacks *kPartRows)
    addPartials(PartialSumArrays<T, kMost> arrays, const float *partials, int64_t parts,
                int64_t width, int64_t pitch, float divisor, Write write) {
  constexpr int kWarps = kPartPacks * kPartRows / kWarp;
  __shared__ ColumnPack space[kWarps - 1][kPartPacks];
  FloatOrArray<T> y = arrays[blockIdx.y];
  if (!y) // for all of the block
    return;
  int64_t first = (int64_t(blockIdx.x) * kPartPacks + threadIdx.x) * kPack;
  float sums[kPack] = {};
  if (first < width)
    addParts(sums, partials + blockIdx.y * parts * pitch, parts, width, pitch, first);
  overWarp<Sum, kPartPacks>(sums);
  int warp = int(threadIdx.y) / (kWarp / kPartPacks);
  bool isFirst = int(threadIdx.y) % (kWarp / kPartPacks) == 0;
  ColumnPack mine;
  if (warp > 0 && isFirst) {
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      mine.values[i] = sums[i];
    copyWords(space[warp - 1][threadIdx.x], mine);
  }
  __syncthreads();
  if (threadIdx.y != 0 || first >= width)
    return;
#pragma unroll
  for (int other = 0; other < kWarps - 1; ++other) {
    copyWords(mine, space[other][threadIdx.x]);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      sums[i] += mine.values[i];
  }
  float before[kPack] = {};
  if (write == Write::Add)
    y.loadAt(before, first, width - first);
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    sums[i] = before[i] + sums[i] / divisor;
  y.storeAt(first, sums, width - first);
}

/// Adds partials[array, parts, width] to the arrays; rows are `pitch` apart, or else `width`.
template <typename T, int kMost>
void launchAddPartials(const Stream &stream, const PartialSumArrays<T, kMost> &arrays,
                       const float *partials, int64_t parts, int64_t width, Write write,
                       float divisor = 1.0f, int64_t pitch = 0) {
  dim3 grid(gridOf(ceilDiv(width, kPartPacks * kPack)).x, unsigned(arrays.count()));
  PARTITA_RT_LAUNCH((addPartials<T, kMost>), grid, dim3(kPartPacks, kPartRows), 0, stream, arrays,
                    partials, parts, width, pitch ? pitch : width, divisor, write);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_KERNELS_COLUMN_SUM_CUH
