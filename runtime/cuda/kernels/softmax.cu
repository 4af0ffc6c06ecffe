// Softmax of rows and its gradient, dx = y * (dy - sum(y dy)). x, y, dy, dx [rows, width] in T.
//
// One read and one write of an element forward, two reads and one write backward: a row stays in
// its threads' registers, with the exponentials of the forward pass in place of x. Rows wider than
// 16,384 elements are read three times, and their exponentials computed twice.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/device.cuh"
#include "cuda/kernels/row.cuh"

namespace partita_rt::cuda {

namespace {

template <typename T, int kHeld>
__global__ void __launch_bounds__(kMostRowThreads)
    softmaxRows(T *y, const T *x, int64_t rows, int64_t width) {
  __shared__ float space[kWarp];
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) // full warps, in blocks of rows that need no barrier
    return;
  Row<T, kHeld> in(x + row * width, width);
  in.widen();
  float largest = Largest::kNone;
  forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
    float (&v)[kPack] = in.pack(k, first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < count)
        largest = Largest::of(v[i], largest);
  });
  largest = overRow<Largest>(largest, space);
  if (largest == Largest::kNone)
    largest = 0.0f; // all masked: exp(-inf) = 0 everywhere
  float sum = 0.0f;
  forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
    float (&v)[kPack] = in.pack(k, first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      v[i] = i < count ? expf(v[i] - largest) : 0.0f;
      sum += v[i];
    }
  });
  sum = overRow<Sum>(sum, space);
  float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
  forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
    float (&v)[kPack] = in.pack(k, first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      v[i] = (kHeld > 0 ? v[i] : expf(v[i] - largest)) * factor;
    store(y + row * width + first, v, count);
  });
}

template <typename T, int kHeld>
__global__ void __launch_bounds__(kMostRowThreads)
    softmaxGradient(T *dx, const T *dy, const T *y, int64_t rows, int64_t width) {
  __shared__ float space[kWarp];
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows)
    return;
  Row<T, kHeld> gradient(dy + row * width, width), value(y + row * width, width);
  gradient.widen();
  value.widen();
  float dot = 0.0f;
  forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
    float (&g)[kPack] = gradient.pack(k, first, count), (&p)[kPack] = value.pack(k, first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      dot += g[i] * p[i];
  });
  dot = overRow<Sum>(dot, space);
  forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
    float (&g)[kPack] = gradient.pack(k, first, count), (&p)[kPack] = value.pack(k, first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      g[i] = p[i] * (g[i] - dot);
    store(dx + row * width + first, g, count);
  });
}

} // namespace

template <typename T>
void softmaxForward(const Stream &stream, T *y, const T *x, int64_t rows, int64_t width) {
  if (rows == 0 || width == 0)
    return;
  RowShape shape = forwardShape(width);
  withHeld<kHeldPacks>(shape.held, [&](auto held) {
    PARTITA_RT_LAUNCH((softmaxRows<T, held()>), gridOf(ceilDiv(rows, shape.rows)), blockOf(shape),
                      0, stream, y, x, rows, width);
  });
}

template <typename T>
void softmaxBackward(const Stream &stream, T *dx, const T *dy, const T *y, int64_t rows,
                     int64_t width) {
  if (rows == 0 || width == 0)
    return;
  RowShape shape = forwardShape(width);
  withHeld<kHeldPacks>(shape.held, [&](auto held) {
    PARTITA_RT_LAUNCH((softmaxGradient<T, held()>), gridOf(ceilDiv(rows, shape.rows)),
                      blockOf(shape), 0, stream, dx, dy, y, rows, width);
  });
}

#define SOFTMAX(T)                                                                                 \
  template void softmaxForward(const Stream &, T *, const T *, int64_t, int64_t);                  \
  template void softmaxBackward(const Stream &, T *, const T *, const T *, int64_t, int64_t);
FOR_STORAGE(SOFTMAX)
#undef SOFTMAX

} // namespace partita_rt::cuda
