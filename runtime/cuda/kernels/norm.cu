// Layer norm (Ba, Kiros and Hinton, arXiv 1607.06450) of rows, y = (x - mean) * rstd * weight +
// bias, and root-mean-square norm (Zhang and Sennrich, arXiv 1910.07467), y = x * rstd * weight:
// the same kernels, which subtract a mean or none. x, y, dy, dx [rows, width] in T; weight and bias
// [width] in T or float, or null; mean and rstd [rows] float.
//
// Forward: one read of x, one write of y (2 * sizeof(T) bytes per element) and 4 or 8 bytes per
// row. A row stays in its threads' registers from the sum to the last multiplication; up to 1024
// elements it belongs to one warp, beyond to a block. Variances are sums of (x - mean)^2, as on the
// CPU, not differences of sums.
//
// Backward: one read of dy and x, one write of dx (3 * sizeof(T) bytes per element), in one pass:
// a block takes every gridDim-th row, or eight of them, a warp each, and keeps the sums of its
// columns in registers and the weight in shared memory. The sums go to scratch memory once and are
// added up by a second launch. Rows wider than 8192 are read again for the columns.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/column_sum.cuh"
#include "cuda/kernels/device.cuh"

namespace partita_rt::cuda {

namespace {

template <typename T, int kHeld, bool kCentered>
__global__ void __launch_bounds__(kMostRowThreads)
    normForward(T *y, float *mean, float *rstd, const T *x, FloatOrArray<const T> weight,
                FloatOrArray<const T> bias, int64_t rows, int64_t width, float epsilon) {
  __shared__ float space[kWarp];
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) // whole warps, in blocks of rows that need no barrier
    return;
  Row<T, kHeld> in(x + row * width, width);
  in.widen();
  float m = 0.0f;
  if constexpr (kCentered) {
    float sum = 0.0f;
    forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
      float(&v)[kPack] = in.pack(k, first, count);
      for (float each : v)
        sum += each;
    });
    m = overRow<Sum>(sum, space) / float(width);
  }
  float squares = 0.0f;
  forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
    float(&v)[kPack] = in.pack(k, first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < count)
        squares += (v[i] - m) * (v[i] - m);
  });
  float s = 1.0f / sqrtf(overRow<Sum>(squares, space) / float(width) + epsilon);
  forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
    float(&v)[kPack] = in.pack(k, first, count);
    float w[kPack], b[kPack] = {};
    if (weight)
      weight.loadAt(w, first, count);
    if (bias)
      bias.loadAt(b, first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      float value = (v[i] - m) * s;
      if (weight)
        value *= w[i];
      v[i] = bias ? value + b[i] : value;
    }
    store(y + row * width + first, v, count);
  });
  if (threadIdx.x == 0) {
    if (mean)
      mean[row] = m;
    if (rstd)
      rstd[row] = s;
  }
}

template <bool kCentered, typename T>
void launchNormForward(const Stream &stream, T *y, float *mean, float *rstd, const T *x,
                       FloatOrArray<const T> weight, FloatOrArray<const T> bias, int64_t rows,
                       int64_t width, float epsilon) {
  if (rows == 0 || width == 0)
    return;
  RowShape shape = forwardShape(width);
  withHeld<kHeldPacks>(shape.held, [&](auto held) {
    PARTITA_RT_LAUNCH((normForward<T, held(), kCentered>), gridOf(ceilDiv(rows, shape.rows)),
                      blockOf(shape), 0, stream, y, mean, rstd, x, weight, bias, rows, width,
                      epsilon);
  });
}

/// What the backward pass reads. Null `mean`: none was subtracted.
template <typename T> struct NormRows {
  const T *dy, *x;
  const float *mean, *rstd;
  int64_t rows, width;
  __device__ float meanOf(int64_t row) const { return mean ? mean[row] : 0.0f; }
};

/// What the rows of a block are multiplied by: held rows read it from shared memory, as floats and
/// with ones if there is none; others from where it stands.
template <typename T, int kHeld> struct NormWeight {
  FloatOrArray<const T> weight;
  ColumnPack *shared;

  __device__ NormWeight(FloatOrArray<const T> weight, ColumnPack *shared, int64_t width)
      : weight(weight), shared(shared) {
    if constexpr (kHeld == 0)
      return;
    if (threadIdx.y == 0)
      forPacks<kHeld>(width, [&](int, int64_t first, int count) {
        ColumnPack w;
        loadAt(w.values, first, count);
        copyWords(shared[first / kPack], w);
      });
    __syncthreads();
  }
  __device__ void loadAt(float (&w)[kPack], int64_t first, int count) const {
    if (weight)
      return weight.loadAt(w, first, count);
#pragma unroll
    for (float &each : w)
      each = 1.0f;
  }
  __device__ void read(float (&w)[kPack], int64_t first, int count) const {
    if constexpr (kHeld > 0)
      widen(w, shared[first / kPack]);
    else
      loadAt(w, first, count);
  }
};

/// Threads of a block of normBackward: of one row, or of rows that have a warp each; and how many
/// blocks a multiprocessor should have room for. Rows of three packs of floats leave room for one.
template <int kHeld>
constexpr int kBackwardThreads = kHeld > 2 ? kRowsBackward *kWarp : kMostRowThreads;
template <typename T, int kHeld>
constexpr int kBackwardBlocks = kHeld > 2 && sizeof(T) == 2 ? 2 : 1;

/// dx = rstd * (g - mean(g) - xhat * mean(g xhat)) with g = dy * weight, without the middle term
/// where no mean was subtracted. partials: null, or the block's sums of dy * xhat [gridDim, width]
/// and behind them those of dy.
template <typename T, int kHeld>
__global__ void __launch_bounds__(kBackwardThreads<kHeld>, kBackwardBlocks<T, kHeld>)
    normBackward(T *dx, float *partials, NormRows<T> in, FloatOrArray<const T> weights,
                 Write write) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ float space[2 * kWarp];
  int64_t width = in.width, stride = int64_t(gridDim.x) * blockDim.y;
  NormWeight<T, kHeld> weight(weights, reinterpret_cast<ColumnPack *>(dynamic), width);
  float dweight[kHeld > 0 ? kHeld : 1][kPack] = {}, dbias[kHeld > 0 ? kHeld : 1][kPack] = {};
  for (int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y; row < in.rows; row += stride) {
    RowBits<T, kHeld> dy(in.dy + row * width, width), x(in.x + row * width, width);
    T *out = dx ? dx + row * width : nullptr;
    RowBits<T, kHeld> before(out, out && write == Write::Add ? width : 0);
    float m = in.meanOf(row), s = in.rstd[row], sums[2] = {}; // of g and of g * xhat
    forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
      float g[kPack], v[kPack], w[kPack];
      dy.read(g, k, first, count);
      x.read(v, k, first, count);
      weight.read(w, first, count);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        float xhat = (v[i] - m) * s, weighted = g[i] * w[i]; // 0 behind the row
        sums[0] += weighted;
        sums[1] += weighted * xhat;
        if constexpr (kHeld > 0) {
          dweight[k][i] += g[i] * xhat;
          dbias[k][i] += g[i];
        }
      }
    });
    overRow<Sum>(sums, space);
    float meanG = in.mean ? sums[0] / float(width) : 0.0f, meanDot = sums[1] / float(width);
    if (!out)
      continue;
    forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
      float g[kPack], v[kPack], w[kPack], value[kPack] = {};
      dy.read(g, k, first, count);
      x.read(v, k, first, count);
      weight.read(w, first, count);
      if (write == Write::Add)
        before.read(value, k, first, count);
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        value[i] += (g[i] * w[i] - meanG - (v[i] - m) * s * meanDot) * s;
      store(out + first, value, count);
    });
  }
  if constexpr (kHeld > 0) {
    if (!partials)
      return;
    auto *rowSums = reinterpret_cast<ColumnPack *>(dynamic);
    __syncthreads(); // the weight's memory becomes theirs
    forPacks<kHeld>(int64_t(kHeld) * blockDim.x * kPack, [&](int k, int64_t first, int) {
      addRowsOfBlock(dweight[k], rowSums);
      addRowsOfBlock(dbias[k], rowSums);
      if (threadIdx.y != 0 || first >= width)
        return;
      store(partials + blockIdx.x * width + first, dweight[k], width - first);
      store(partials + (int64_t(gridDim.x) + blockIdx.x) * width + first, dbias[k], width - first);
    });
  }
}

/// The sums of columns of rows that are too wide for registers. `kBias`: of dy alone.
template <typename T, bool kBias> __global__ void normColumns(float *partials, NormRows<T> in) {
  partialColumns(partials, in.rows, in.width, [&](int64_t row, int64_t first, float(&x)[kPack]) {
    Pack<T, kPack> dy, bits;
    loadBits(dy, in.dy + row * in.width + first, in.width - first);
    if constexpr (!kBias)
      loadBits(bits, in.x + row * in.width + first, in.width - first);
    widen(x, dy);
    if constexpr (!kBias) {
      float v[kPack], m = in.meanOf(row), s = in.rstd[row];
      widen(v, bits);
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        x[i] *= (v[i] - m) * s;
    }
  });
}

/// body(n): n packs per thread of a row that is held, else 0; a constant.
template <typename Body> void withHeldBackward(int64_t width, Body body) {
  if (heldPacksBackward(width) == 3)
    body(std::integral_constant<int, 3>());
  else
    withHeld<2>(backwardShape(width).held, body);
}

template <typename T>
void launchNormBackward(const Stream &stream, T *dx, FloatOrArray<T> dweight, FloatOrArray<T> dbias,
                        const NormRows<T> &in, FloatOrArray<const T> weight, Write write,
                        Write dxWrite) {
  int64_t rows = in.rows, width = in.width, scratch = normBackwardScratch(rows, width);
  if (width == 0)
    return;
  RowShape shape = backwardShape(width);
  bool wanted = dweight.data || dbias.data;
  float *partials = wanted ? scratchOf<float>(stream, scratch, "normBackward") : nullptr;
  int64_t blocks = normBackwardBlocks(rows, width);
  int64_t parts = shape.held ? blocks : columnBlocks(rows, width);
  if (wanted && !shape.held && rows > 0) { // before dx, which may overwrite dy
    dim3 grid = columnGrid(rows, width), block(kColumnPacks, kColumnRows);
    PARTITA_RT_LAUNCH((normColumns<T, false>), grid, block, 0, stream, partials, in);
    PARTITA_RT_LAUNCH((normColumns<T, true>), grid, block, 0, stream, partials + parts * width, in);
  }
  if (rows > 0 && (dx || (wanted && shape.held)))
    withHeldBackward(width, [&](auto held) {
      int64_t packs = most(rowSumSpace(shape.threads, shape.rows), held() * shape.threads);
      PARTITA_RT_LAUNCH((normBackward<T, held()>), gridOf(blocks), blockOf(shape),
                        packs * sizeof(ColumnPack), stream, dx, shape.held ? partials : nullptr, in,
                        weight, dxWrite);
    });
  if (wanted)
    launchAddPartials(stream, dweight, dbias, partials, rows == 0 ? 0 : parts, width, write);
}

} // namespace

//===-- Layer norm --------------------------------------------------------------------------===//

template <typename T>
void layerNormForward(const Stream &stream, T *y, float *mean, float *rstd, const T *x,
                      FloatOr<const T> weight, FloatOr<const T> bias, int64_t rows, int64_t width,
                      float epsilon) {
  launchNormForward<true, T>(stream, y, mean, rstd, x, weight, bias, rows, width, epsilon);
}

template <typename T>
void layerNormBackward(const Stream &stream, T *dx, FloatOr<T> dweight, FloatOr<T> dbias,
                       const T *dy, const T *x, FloatOr<const T> weight, const float *mean,
                       const float *rstd, int64_t rows, int64_t width, Write write, Write dxWrite) {
  launchNormBackward<T>(stream, dx, dweight, dbias, {dy, x, mean, rstd, rows, width}, weight, write,
                        dxWrite);
}

//===-- Root-mean-square norm ---------------------------------------------------------------===//

template <typename T>
void rmsNormForward(const Stream &stream, T *y, float *rstd, const T *x, FloatOr<const T> weight,
                    int64_t rows, int64_t width, float epsilon) {
  launchNormForward<false, T>(stream, y, nullptr, rstd, x, weight, {}, rows, width, epsilon);
}

template <typename T>
void rmsNormBackward(const Stream &stream, T *dx, FloatOr<T> dweight, const T *dy, const T *x,
                     FloatOr<const T> weight, const float *rstd, int64_t rows, int64_t width,
                     Write write, Write dxWrite) {
  launchNormBackward<T>(stream, dx, dweight, {}, {dy, x, nullptr, rstd, rows, width}, weight, write,
                        dxWrite);
}

#define NORM(T)                                                                                    \
  template void layerNormForward(const Stream &, T *, float *, float *, const T *,                 \
                                 FloatOr<const T>, FloatOr<const T>, int64_t, int64_t, float);     \
  template void layerNormBackward(const Stream &, T *, FloatOr<T>, FloatOr<T>, const T *,          \
                                  const T *, FloatOr<const T>, const float *, const float *,       \
                                  int64_t, int64_t, Write, Write);                                 \
  template void rmsNormForward(const Stream &, T *, float *, const T *, FloatOr<const T>, int64_t, \
                               int64_t, float);                                                    \
  template void rmsNormBackward(const Stream &, T *, FloatOr<T>, const T *, const T *,             \
                                FloatOr<const T>, const float *, int64_t, int64_t, Write, Write);
FOR_STORAGE(NORM)
#undef NORM

} // namespace partita_rt::cuda
