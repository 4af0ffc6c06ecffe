// Sums over rows in two launches: blocks of rows make partial sums in float, in scratch memory, and
// these are added up in order. Nothing is added by atomics, so nothing depends on chance.

#ifndef PARTITA_RT_CUDA_COLUMN_SUM_CUH
#define PARTITA_RT_CUDA_COLUMN_SUM_CUH

#include "cuda/kernels/row.cuh"

namespace partita_rt::cuda {

/// Rows of the block add up: space[width] of the y-th row of threads to that of the first, in
/// order. Every thread has kPack columns and comes here.
__device__ inline void addRowsOfBlock(float (&sums)[kPack], float *space) {
  for (unsigned from = 1; from < blockDim.y; ++from) {
    if (threadIdx.y == from)
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        space[threadIdx.x * kPack + i] = sums[i];
    __syncthreads();
    if (threadIdx.y == 0)
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        sums[i] += space[threadIdx.x * kPack + i];
    __syncthreads();
  }
}

/// Partial sums of the columns of what `element(row, first, x)` makes: the pack at column `first`
/// of a row. Block (x, y) has kColumnPacks packs of columns and, of the rows, every gridDim.y-th
/// group of kColumnRows. partials[gridDim.y, width].
template <typename Element>
__device__ inline void partialColumns(float *partials, int64_t rows, int64_t width,
                                      Element element) {
  __shared__ float space[kColumnPacks * kPack];
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

/// y[width] (+)= the sums of partials[parts, width], divided, in order: eight runs of every eighth
/// part, then these. Moves 4 * parts * width bytes.
template <typename T>
__global__ void addPartials(FloatOrArray<T> y, const float *partials, int64_t parts, int64_t width,
                            float divisor, Write write) {
  __shared__ float space[kColumnPacks * kPack];
  int64_t first = (int64_t(blockIdx.x) * kColumnPacks + threadIdx.x) * kPack;
  float sums[kPack] = {};
  if (first < width)
    for (int64_t part = threadIdx.y; part < parts; part += kColumnRows) {
      float x[kPack];
      load(x, partials + part * width + first, width - first);
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        sums[i] += x[i];
    }
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

template <typename T>
void launchAddPartials(const Stream &stream, FloatOrArray<T> y, const float *partials,
                       int64_t parts, int64_t width, Write write, float divisor = 1.0f) {
  PARTITA_RT_LAUNCH(addPartials<T>, gridOf(ceilDiv(width, kColumnPacks * kPack)),
                    dim3(kColumnPacks, kColumnRows), 0, stream, y, partials, parts, width, divisor,
                    write);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_COLUMN_SUM_CUH
