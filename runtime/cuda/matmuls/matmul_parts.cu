// Kernels around matmuls (matmul_parts.h): casts of matrices, a matmul over nothing, the bias and
// the GELU if cuBLASLt has no epilogue for the shape. One pack of a row per thread. Moves each
// matrix once: at most 2 * sizeof(T) bytes read and sizeof(T) written per element.

#include "cuda/matmuls/matmul_parts.h"

#include "cuda/kernels/device.cuh"
#include "partita_rt/cuda/divisor.cuh"
#include "partita_rt/cuda/elementwise.cuh"
#include "partita_rt/math.h"

namespace partita_rt::cuda {

namespace {

/// Body: operator()(int64_t row, int64_t column, int count) const.
template <typename Body> struct InRows {
  int64_t width;
  Divisor packs; ///< per row; the last one may be partial
  Body body;
  __device__ void operator()(int64_t first, int) const {
    int64_t pack = first / kPack, row = packs.quotient(pack);
    int64_t column = (pack - row * packs) * kPack;
    body(row, column, int(least(width - column, kPack)));
  }
};

template <typename Body>
void launchRows(const Stream &stream, int64_t rows, int64_t width, const Body &body) {
  int64_t packs = ceilDiv(width, kPack);
  if (rows > 0 && packs > 0)
    launchElementwise<kPack>(stream, rows * packs * kPack, InRows<Body>{width, packs, body});
}

template <typename D, typename S> struct ConvertRow {
  D *dst;
  int64_t dstStride;
  const S *src;
  int64_t srcStride;
  __device__ void operator()(int64_t row, int64_t column, int count) const {
    float x[kPack];
    load(x, src + row * srcStride + column, count);
    store(dst + row * dstStride + column, x, count);
  }
};

template <typename T> struct ScaleRow {
  T *x;
  int64_t stride;
  float factor;
  __device__ void operator()(int64_t row, int64_t column, int count) const {
    float v[kPack] = {};
    if (factor != 0.0f)
      load(v, x + row * stride + column, count);
#pragma unroll
    for (float &each : v)
      each *= factor;
    store(x + row * stride + column, v, count);
  }
};

template <typename T> struct AddRow {
  T *x;
  int64_t stride;
  const T *addend;
  __device__ void operator()(int64_t row, int64_t column, int count) const {
    float v[kPack], a[kPack];
    load(v, x + row * stride + column, count);
    load(a, addend + column, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      v[i] += a[i];
    store(x + row * stride + column, v, count);
  }
};

__device__ inline float geluTanh(float x) {
  return near_tanh(0.7978845608028654f * (x + 0.044715f * x * x * x));
}

template <typename T> struct GeluRow {
  T *y;
  int64_t yStride;
  const T *x;
  int64_t xStride;
  __device__ void operator()(int64_t row, int64_t column, int count) const {
    float v[kPack];
    load(v, x + row * xStride + column, count);
#pragma unroll
    for (float &each : v)
      each = 0.5f * each * (1.0f + geluTanh(each));
    store(y + row * yStride + column, v, count);
  }
};

template <typename T> struct GeluGradRow {
  T *dx;
  int64_t dxStride;
  const T *x;
  int64_t xStride;
  __device__ void operator()(int64_t row, int64_t column, int count) const {
    float d[kPack], v[kPack];
    load(d, dx + row * dxStride + column, count);
    load(v, x + row * xStride + column, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      d[i] *= gelu_tanh_slope(v[i], geluTanh(v[i]));
    store(dx + row * dxStride + column, d, count);
  }
};

} // namespace

template <typename D, typename S>
void convertRows(const Stream &stream, D *dst, int64_t dstStride, const S *src, int64_t srcStride,
                 int64_t rows, int64_t width) {
  launchRows(stream, rows, width, ConvertRow<D, S>{dst, dstStride, src, srcStride});
}

template <typename T>
void scaleRows(const Stream &stream, T *x, int64_t stride, float factor, int64_t rows,
               int64_t width) {
  launchRows(stream, rows, width, ScaleRow<T>{x, stride, factor});
}

template <typename T>
void addRow(const Stream &stream, T *x, int64_t stride, const T *row, int64_t rows, int64_t width) {
  launchRows(stream, rows, width, AddRow<T>{x, stride, row});
}

template <typename T>
void geluRows(const Stream &stream, T *y, int64_t yStride, const T *x, int64_t xStride,
              int64_t rows, int64_t width) {
  launchRows(stream, rows, width, GeluRow<T>{y, yStride, x, xStride});
}

template <typename T>
void geluGradRows(const Stream &stream, T *dx, int64_t dxStride, const T *x, int64_t xStride,
                  int64_t rows, int64_t width) {
  launchRows(stream, rows, width, GeluGradRow<T>{dx, dxStride, x, xStride});
}

#define CONVERT(D, S)                                                                              \
  template void convertRows(const Stream &, D *, int64_t, const S *, int64_t, int64_t, int64_t);
#define ROWS(T)                                                                                    \
  CONVERT(float, T)                                                                                \
  CONVERT(Half, T)                                                                                 \
  CONVERT(BFloat16, T)                                                                             \
  template void scaleRows(const Stream &, T *, int64_t, float, int64_t, int64_t);                  \
  template void addRow(const Stream &, T *, int64_t, const T *, int64_t, int64_t);                 \
  template void geluRows(const Stream &, T *, int64_t, const T *, int64_t, int64_t, int64_t);      \
  template void geluGradRows(const Stream &, T *, int64_t, const T *, int64_t, int64_t, int64_t);
FOR_STORAGE(ROWS)
#undef ROWS
#undef CONVERT

} // namespace partita_rt::cuda
