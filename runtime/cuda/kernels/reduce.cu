// Sums, means and maxima over one dimension of [outer, n, inner], and columnSum, the gradient of a
// bias: x in T, results in T or float. One read of x: sizeof(T) bytes per element. Leading
// dimensions use partial sums (column_sum.cuh: 4 * columnBlocks bytes per column, written and
// read, if there are more than one), trailing ones have a warp or a block per row.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/column_sum.cuh"
#include "cuda/kernels/device.cuh"
#include "partita_rt/cuda/divisor.cuh"

namespace partita_rt::cuda {

namespace {

/// y[row] (+)= the sum of a row, divided; or its max.
template <typename Op, typename Y, typename T>
__global__ void __launch_bounds__(kMostRowThreads)
    reduceRows(Y *y, const T *x, int64_t rows, int64_t n, float divisor, Write write) {
  __shared__ float space[kWarp];
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) // full warps, in blocks of rows that need no barrier
    return;
  float result = Op::kNone;
  forPacks<0>(n, [&](int, int64_t first, int count) {
    float v[kPack];
    load(v, x + row * n + first, count, Op::kNone);
#pragma unroll
    for (float each : v)
      result = Op::of(result, each);
  });
  result = overRow<Op>(result, space) / divisor;
  if (threadIdx.x == 0)
    y[row] = write == Write::Add ? float(y[row]) + result : result;
}

/// Sums the rows of one outer index in block z; partials[gridDim.y, gridDim.z, width].
template <typename T>
__global__ void partialSums(float *partials, const T *x, int64_t rows, int64_t width,
                            int64_t stride, int64_t outerStride, int64_t partStride) {
  const T *from = x + int64_t(blockIdx.z) * outerStride;
  // partialColumns places part y at y * width: partStride is beyond that.
  float *to = partials + int64_t(blockIdx.z) * width + int64_t(blockIdx.y) * (partStride - width);
  partialColumns(to, rows, width, [&](int64_t row, int64_t first, float (&v)[kPack]) {
    load(v, from + row * stride + first, width - first);
  });
}

/// y[outer, width] (+)= the sums of all rows of outer index z, divided, where one block has them all.
template <typename Y, typename T>
__global__ void sumFewRows(Y *y, const T *x, int64_t rows, int64_t width, int64_t stride,
                           int64_t outerStride, float divisor, Write write) {
  const T *from = x + int64_t(blockIdx.z) * outerStride;
  Y *to = y + int64_t(blockIdx.z) * width;
  columnsOfBlock(
      rows, width,
      [&](int64_t row, int64_t first, float (&v)[kPack]) {
        load(v, from + row * stride + first, width - first);
      },
      [&](int64_t first, float (&sums)[kPack]) {
        float before[kPack] = {};
        if (write == Write::Add)
          load(before, to + first, width - first);
#pragma unroll
        for (int i = 0; i < kPack; ++i)
          sums[i] = before[i] + sums[i] / divisor;
        store(to + first, sums, width - first);
      });
}

/// y[outer, inner] = the max over n; one pack of columns per thread.
template <typename Y, typename T>
__global__ void maxColumns(Y *y, const T *x, int64_t outer, int64_t n, int64_t inner,
                           Divisor packs) {
  int64_t number = globalThread(), o = packs.quotient(number);
  int64_t first = (number - o * packs) * kPack;
  if (o >= outer)
    return;
  float largest[kPack];
#pragma unroll
  for (float &each : largest)
    each = Largest::kNone;
  for (int64_t row = 0; row < n; ++row) {
    float v[kPack];
    load(v, x + (o * n + row) * inner + first, inner - first);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      largest[i] = Largest::of(largest[i], v[i]);
  }
  store(y + o * inner + first, largest, inner - first);
}

constexpr int64_t kMostOuter = 65535; // of a grid's z dimension

/// y[outer, inner] (+)= sums over n, divided.
template <typename Y, typename T>
void sumColumns(const Stream &stream, Y *y, const T *x, int64_t outer, int64_t n, int64_t inner,
                int64_t stride, float divisor, Write write) {
  int64_t width = outer * inner, parts = n == 0 ? 0 : columnBlocks(n, width);
  if (width == 0)
    return;
  auto *partials =
      parts == 1 ? nullptr : scratchOf<float>(stream, columnSumScratch(n, width), "columnSum");
  for (int64_t o = 0; o < outer && n > 0; o += kMostOuter) {
    dim3 grid(gridOf(ceilDiv(inner, kColumnPacks * kPack)).x, unsigned(parts),
              unsigned(least(outer - o, kMostOuter)));
    if (parts == 1)
      PARTITA_RT_LAUNCH((sumFewRows<Y, T>), grid, dim3(kColumnPacks, kColumnRows), 0, stream,
                        y + o * inner, x + o * n * stride, n, inner, stride, n * stride, divisor,
                        write);
    else
      PARTITA_RT_LAUNCH(partialSums<T>, grid, dim3(kColumnPacks, kColumnRows), 0, stream,
                        partials + o * inner, x + o * n * stride, n, inner, stride, n * stride,
                        width);
  }
  if (parts != 1)
    launchAddPartials<Y, 1>(stream, {{FloatOr<Y>(y)}}, partials, parts, width, write, divisor);
}

template <typename Op, typename Y, typename T>
void launchReduceRows(const Stream &stream, Y *y, const T *x, int64_t rows, int64_t n,
                      float divisor, Write write) {
  if (rows == 0)
    return;
  RowShape shape = forwardShape(n);
  PARTITA_RT_LAUNCH((reduceRows<Op, Y, T>), gridOf(ceilDiv(rows, shape.rows)), blockOf(shape), 0,
                    stream, y, x, rows, n, divisor, write);
}

} // namespace

template <typename Y, typename T>
void columnSum(const Stream &stream, Y *y, const T *x, int64_t rows, int64_t width, int64_t stride,
               Write write) {
  sumColumns(stream, y, x, 1, rows, width, stride, 1.0f, write);
}

template <typename Y, typename T>
void reduceSum(const Stream &stream, Y *y, const T *x, int64_t outer, int64_t n, int64_t inner,
               Write write) {
  if (inner == 1)
    launchReduceRows<Sum>(stream, y, x, outer, n, 1.0f, write);
  else
    sumColumns(stream, y, x, outer, n, inner, inner, 1.0f, write);
}

template <typename Y, typename T>
void reduceMean(const Stream &stream, Y *y, const T *x, int64_t outer, int64_t n, int64_t inner) {
  if (inner == 1)
    launchReduceRows<Sum>(stream, y, x, outer, n, float(n), Write::Set);
  else
    sumColumns(stream, y, x, outer, n, inner, inner, float(n), Write::Set);
}

template <typename Y, typename T>
void reduceMax(const Stream &stream, Y *y, const T *x, int64_t outer, int64_t n, int64_t inner) {
  if (inner == 1)
    return launchReduceRows<Largest>(stream, y, x, outer, n, 1.0f, Write::Set);
  int64_t packs = ceilDiv(inner, kPack), threads = outer * packs;
  if (threads > 0)
    PARTITA_RT_LAUNCH((maxColumns<Y, T>), gridOf(ceilDiv(threads, 128)), 128, 0, stream, y, x,
                      outer, n, inner, packs);
}

#define REDUCE(Y, T)                                                                               \
  template void columnSum(const Stream &, Y *, const T *, int64_t, int64_t, int64_t, Write);       \
  template void reduceSum(const Stream &, Y *, const T *, int64_t, int64_t, int64_t, Write);       \
  template void reduceMean(const Stream &, Y *, const T *, int64_t, int64_t, int64_t);             \
  template void reduceMax(const Stream &, Y *, const T *, int64_t, int64_t, int64_t);
FOR_RESULTS(REDUCE)
#undef REDUCE

} // namespace partita_rt::cuda
