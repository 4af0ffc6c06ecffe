// Layer norm (Ba, Kiros and Hinton, arXiv 1607.06450) of rows, y = (x - mean) * rstd * weight +
// bias, and root-mean-square norm (Zhang and Sennrich, arXiv 1910.07467), y = x * rstd * weight:
// the same kernels, which subtract a mean or none. x, y, dy, dx [rows, width] in T; weight and bias
// [width] in T or float, or null; mean and rstd [rows] float.
//
// Forward: one read of x, one write of y (2 * sizeof(T) bytes per element) and 4 or 8 bytes per
// row. A row stays in its threads' registers from the sum to the last multiplication; up to 1024
// elements it belongs to one warp, beyond that to a block. Variances are sums of (x - mean)^2, as
// on the CPU, not differences of sums.
//
// Backward: one read of dy and x, one write of dx (3 * sizeof(T) bytes per element), in one pass: a
// block takes every gridDim-th row, or eight of them, a warp each, and keeps the sums of its
// columns in registers and the weight in shared memory. The sums go to scratch memory once and are
// added up by a second launch. Rows wider than 8192 are read again for the columns.
//
// If requested, the sums of dx's columns are a third sum, over dx as stored, so that they equal
// columnSum's of dx except for the order: a block's rows one after another, its rows of threads in
// order, then the blocks as in addPartials.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/column_sum.cuh"
#include "cuda/kernels/device.cuh"

namespace partita_rt::cuda {

namespace {

/// Loads a norm's weight or bias, if any. kFullPacks: packs are known to be full and aligned.
template <bool kFullPacks, typename T>
__device__ void loadParameter(float (&w)[kPack], const FloatOrArray<const T> &parameter,
                              int64_t first, int count) {
  if constexpr (!kFullPacks)
    return parameter.loadAt(w, first, count);
  if (parameter.isFloat) {
    Pack<float, kPack> bits;
    loadAligned(bits, parameter.floats() + first);
    widen(w, bits);
  } else {
    Pack<T, kPack> bits;
    loadAligned(bits, parameter.others() + first);
    widen(w, bits);
  }
}

template <typename T> __device__ void storePack(T *p, const float (&x)[kPack]) {
  Pack<T, kPack> bits;
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    bits.values[i] = x[i];
  storeAligned(p, bits);
}

/// kFullPacks: rows are full packs, and all arrays aligned to them.
template <typename T, int kHeld, bool kFullPacks, bool kCentered>
__global__ void __launch_bounds__(kMostRowThreads)
    normForward(T *y, float *mean, float *rstd, const T *x, FloatOrArray<const T> weight,
                FloatOrArray<const T> bias, int64_t rows, int64_t width, float epsilon) {
  __shared__ float space[kWarp];
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) // full warps, in blocks of rows that need no barrier
    return;
  Row<T, kHeld, kFullPacks> in(x + row * width, width);
  in.widen();
  float m = 0.0f;
  if constexpr (kCentered) {
    float sum = 0.0f;
    forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
      float (&v)[kPack] = in.pack(k, first, count);
      for (float each : v)
        sum += each;
    });
    m = overRow<Sum>(sum, space) / float(width);
  }
  float squares = 0.0f;
  forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
    float (&v)[kPack] = in.pack(k, first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      float centered = v[i] - m;
      if (kFullPacks || i < count)
        squares += centered * centered;
      if constexpr (kHeld > 0)
        v[i] = centered;
    }
  });
  float s = 1.0f / sqrtf(overRow<Sum>(squares, space) / float(width) + epsilon);
  forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
    float (&v)[kPack] = in.pack(k, first, count);
    float w[kPack], b[kPack] = {};
    if (weight)
      loadParameter<kFullPacks>(w, weight, first, count);
    if (bias)
      loadParameter<kFullPacks>(b, bias, first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      float value = (kHeld > 0 ? v[i] : v[i] - m) * s;
      if (weight)
        value *= w[i];
      v[i] = bias ? value + b[i] : value;
    }
    if constexpr (kFullPacks)
      storePack(y + row * width + first, v);
    else
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
  bool full = width % kPack == 0;
  for (const void *each :
       {static_cast<const void *>(y), static_cast<const void *>(x),
        static_cast<const void *>(weight.data), static_cast<const void *>(bias.data)})
    full = full && reinterpret_cast<uintptr_t>(each) % 16 == 0;
  withHeld<kHeldPacks>(shape.held, [&](auto held) {
    auto launch = [&](auto areFull) {
      PARTITA_RT_LAUNCH((normForward<T, held(), areFull(), kCentered>),
                        gridOf(ceilDiv(rows, shape.rows)), blockOf(shape), 0, stream, y, mean, rstd,
                        x, weight, bias, rows, width, epsilon);
    };
    if (full && held() > 0)
      launch(std::bool_constant<(held() > 0)>());
    else
      launch(std::false_type());
  });
}

/// The inputs of the backward pass. Null `mean`: none was subtracted.
template <typename T> struct NormRows {
  const T *dy, *x;
  const float *mean, *rstd;
  int64_t rows, width;
  __device__ float meanOf(int64_t row) const { return mean ? mean[row] : 0.0f; }
};

/// The factors of a block's rows: held rows read them from shared memory, as floats, or ones if
/// there is no weight; others read them in place.
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

/// Threads per block of normBackward, which has one row, or several with a warp each; and the
/// number of blocks that should fit into a multiprocessor. With three packs of floats per row one
/// fits.
template <int kHeld>
constexpr int kBackwardThreads = kHeld > 2 ? kRowsBackward *kWarp : kMostRowThreads;
template <typename T, int kHeld>
constexpr int kBackwardBlocks = kHeld > 2 && sizeof(T) == 2 ? 2 : 1;

/// A thread's sums of dx's columns: in registers or, if two other sums leave none, in shared memory
/// that no other thread reads. A warp's accesses there are to adjacent 16 bytes.
template <typename T, int kHeld> class DxSums {
public:
  static constexpr bool kShared = kHeld > 2 && sizeof(T) == 2;
  /// Bytes of shared memory for a block of this many threads.
  static constexpr int64_t bytes(int64_t threads) {
    return kShared ? threads * kHeld * int64_t(sizeof(ColumnPack)) : 0;
  }

  __device__ explicit DxSums(unsigned char *shared)
      : mine(reinterpret_cast<HalfPack *>(shared) + threadIdx.y * kHeld * 2 * blockDim.x +
             threadIdx.x) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k)
      set(k, {});
  }
  __device__ void add(int k, const float (&x)[kPack]) {
    float sums[kPack];
    get(sums, k);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      sums[i] += x[i];
    set(k, sums);
  }
  __device__ void get(float (&sums)[kPack], int k) const {
    if constexpr (kShared) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        HalfPack bits;
        copyWords(bits, mine[(2 * k + half) * int(blockDim.x)]);
#pragma unroll
        for (int i = 0; i < kPack / 2; ++i)
          sums[half * kPack / 2 + i] = bits.values[i];
      }
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        sums[i] = held[k][i];
    }
  }

private:
  using HalfPack = Pack<float, kPack / 2>;
  HalfPack *mine;
  float held[kShared ? 1 : kHeld][kPack];

  __device__ void set(int k, const float (&sums)[kPack]) {
    if constexpr (kShared) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        HalfPack bits;
#pragma unroll
        for (int i = 0; i < kPack / 2; ++i)
          bits.values[i] = sums[half * kPack / 2 + i];
        copyWords(mine[(2 * k + half) * int(blockDim.x)], bits);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        held[k][i] = sums[i];
    }
  }
};

struct NoSums {
  __device__ explicit NoSums(unsigned char *) {}
};

/// Stores p[0 .. count) = x, rounded once, and sets x to the stored values.
template <typename T> __device__ void storeAndRound(T *p, float (&x)[kPack], int64_t count) {
  Pack<T, kPack> bits;
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    bits.values[i] = x[i];
  if (count >= kPack && isAligned<kAccess<T, kPack>>(p))
    storeAligned(p, bits);
  else
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < count)
        p[i] = bits.values[i];
  widen(x, bits);
}

/// Stores a block's sums of a column pack to [array, gridDim, width].
__device__ inline void storePartials(float *partials, int array, int64_t first, int64_t width,
                                     const float (&sums)[kPack]) {
  int64_t part = int64_t(array) * gridDim.x + blockIdx.x;
  store(partials + part * width + first, sums, width - first);
}

/// dx = rstd * (g - mean(g) - xhat * mean(g xhat)) with g = dy * weight, without the middle term if
/// no mean was subtracted. partials [arrays, gridDim, width]: the block's sums of dy * xhat, of dy,
/// and with kSums of dx, which use the shared memory after the weight's.
template <typename T, int kHeld, bool kSums>
__global__ void __launch_bounds__(kBackwardThreads<kHeld>, kBackwardBlocks<T, kHeld>)
    normBackward(T *dx, float *partials, int arrays, NormRows<T> in, FloatOrArray<const T> weights,
                 Write write, int64_t sumsAt) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ float space[2 * kWarp];
  int64_t width = in.width, stride = int64_t(gridDim.x) * blockDim.y;
  NormWeight<T, kHeld> weight(weights, reinterpret_cast<ColumnPack *>(dynamic), width);
  constexpr int kKept = kHeld > 0 ? kHeld : 1;
  float dweight[kKept][kPack] = {}, dbias[kKept][kPack] = {};
  std::conditional_t<kSums, DxSums<T, kHeld>, NoSums> dxSums(dynamic + sumsAt);
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
        float xhat = (v[i] - m) * s, weighted = g[i] * w[i]; // 0 after the row
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
      if constexpr (kSums) {
        storeAndRound(out + first, value, count);
        dxSums.add(k, value);
      } else {
        store(out + first, value, count);
      }
    });
  }
  if constexpr (kHeld > 0) {
    if (arrays == 0)
      return;
    auto *rowSums = reinterpret_cast<ColumnPack *>(dynamic);
    __syncthreads(); // the weight's memory is reused for them
    forPacks<kHeld>(int64_t(kHeld) * blockDim.x * kPack, [&](int k, int64_t first, int) {
      addRowsOfBlock(dweight[k], rowSums);
      if (arrays > 1)
        addRowsOfBlock(dbias[k], rowSums);
      float sums[kPack];
      if constexpr (kSums) {
        dxSums.get(sums, k);
        addRowsOfBlock(sums, rowSums);
      }
      if (threadIdx.y != 0 || first >= width)
        return;
      storePartials(partials, 0, first, width, dweight[k]);
      if (arrays > 1)
        storePartials(partials, 1, first, width, dbias[k]);
      if constexpr (kSums)
        storePartials(partials, 2, first, width, sums);
    });
  }
}

/// Sums the columns of rows that are too wide for registers. `kBias`: of dy alone.
template <typename T, bool kBias> __global__ void normColumns(float *partials, NormRows<T> in) {
  partialColumns(partials, in.rows, in.width, [&](int64_t row, int64_t first, float (&x)[kPack]) {
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

/// Calls body(n) with n packs per thread of a row that is held, else 0, as a constant.
template <typename Body> void withHeldBackward(int64_t width, Body body) {
  if (heldPacksBackward(width) == 3)
    body(std::integral_constant<int, 3>());
  else
    withHeld<2>(backwardShape(width).held, body);
}

/// Gradients of parameters, and the sums of dx's columns; null: not computed.
template <typename T> using NormGradients = PartialSumArrays<T, 3>;

template <typename T>
void launchNormBackward(const Stream &stream, T *dx, const NormGradients<T> &gradients,
                        const NormRows<T> &in, FloatOrArray<const T> weight, Write write,
                        Write dxWrite) {
  int64_t rows = in.rows, width = in.width;
  if (width == 0)
    return;
  RowShape shape = backwardShape(width);
  int arrays = gradients.count();
  bool sums = arrays == 3;
  float *partials =
      scratchOf<float>(stream, normBackwardScratch(rows, width, arrays), "normBackward");
  int64_t blocks = normBackwardBlocks(rows, width);
  int64_t parts = shape.held ? blocks : columnBlocks(rows, width);
  auto columns = [&](int array, auto isBias, const NormRows<T> &of) {
    PARTITA_RT_LAUNCH((normColumns<T, isBias()>), columnGrid(rows, width),
                      dim3(kColumnPacks, kColumnRows), 0, stream, partials + array * parts * width,
                      of);
  };
  if (!shape.held && rows > 0) { // before dx, which may overwrite dy
    if (arrays > 0)
      columns(0, std::false_type(), in);
    if (arrays > 1)
      columns(1, std::true_type(), in);
  }
  if (rows > 0 && (dx || (arrays > 0 && shape.held)))
    withHeldBackward(width, [&](auto held) {
      int64_t packs = most(rowSumSpace(shape.threads, shape.rows), held() * shape.threads);
      int64_t bytes = packs * int64_t(sizeof(ColumnPack));
      auto launch = [&](auto withSums) {
        int64_t more = withSums() ? DxSums<T, held()>::bytes(shape.threads * shape.rows) : 0;
        PARTITA_RT_LAUNCH((normBackward<T, held(), withSums()>), gridOf(blocks), blockOf(shape),
                          bytes + more, stream, dx, partials, arrays, in, weight, dxWrite, bytes);
      };
      if (sums && held() > 0)
        launch(std::bool_constant<(held() > 0)>());
      else
        launch(std::false_type());
    });
  if (!shape.held && rows > 0 && sums) {
    NormRows<T> made = in;
    made.dy = dx;
    columns(2, std::true_type(), made);
  }
  if (arrays > 0)
    launchAddPartials(stream, gradients, partials, rows == 0 ? 0 : parts, width, write);
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
                       FloatOr<T> sums, const T *dy, const T *x, FloatOr<const T> weight,
                       const float *mean, const float *rstd, int64_t rows, int64_t width,
                       Write write, Write dxWrite) {
  launchNormBackward<T>(stream, dx, {dweight, dbias, sums}, {dy, x, mean, rstd, rows, width},
                        weight, write, dxWrite);
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
  launchNormBackward<T>(stream, dx, {dweight}, {dy, x, nullptr, rstd, rows, width}, weight, write,
                        dxWrite);
}

#define NORM(T)                                                                                    \
  template void layerNormForward(const Stream &, T *, float *, float *, const T *,                 \
                                 FloatOr<const T>, FloatOr<const T>, int64_t, int64_t, float);     \
  template void layerNormBackward(const Stream &, T *, FloatOr<T>, FloatOr<T>, FloatOr<T>,         \
                                  const T *, const T *, FloatOr<const T>, const float *,           \
                                  const float *, int64_t, int64_t, Write, Write);                  \
  template void rmsNormForward(const Stream &, T *, float *, const T *, FloatOr<const T>, int64_t, \
                               int64_t, float);                                                    \
  template void rmsNormBackward(const Stream &, T *, FloatOr<T>, const T *, const T *,             \
                                FloatOr<const T>, const float *, int64_t, int64_t, Write, Write);
FOR_STORAGE(NORM)
#undef NORM

} // namespace partita_rt::cuda
