// Rotary position embedding (Su et al., arXiv 2104.09864): rotates every pair (a, b) of a row by
// its angle. x, y [..., width] in T, cosines and sines of the same shape in float, repeated along
// the dimensions that share them. Moves 2 * sizeof(T) bytes per element, plus the angles, which are
// in L2 after the first head. Also the quarter turn alone, (-b, a): x, y [rows, width].

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/device.cuh"
#include "partita_rt/cuda/divisor.cuh"
#include "partita_rt/cuda/elementwise.cuh"

namespace partita_rt::cuda {

namespace {

/// Turns pairs i and i + half: a thread has a pack of first elements and one of second ones.
template <typename T>
__global__ void rotateHalves(T *y, const T *x, int64_t rows, int64_t half, Divisor packs) {
  int64_t number = globalThread(), row = packs.quotient(number);
  int64_t first = (number - row * packs) * kPack, count = half - first;
  if (row >= rows)
    return;
  x += row * 2 * half + first;
  y += row * 2 * half + first;
  Pack<T, kPack> firsts, seconds;
  loadBits(firsts, x, count);
  loadBits(seconds, x + half, count);
  float a[kPack], b[kPack];
  widen(a, firsts);
  widen(b, seconds);
#pragma unroll
  for (float &each : b)
    each = -each;
  store(y, b, count);
  store(y + half, a, count);
}

/// The body of the quarter turn of pairs 2i and 2i + 1 of a full tensor.
template <typename T> struct RotateInterleaved {
  T *y;
  const T *x;
  __device__ void operator()(int64_t first, int count) const {
    float v[kPack];
    load(v, x + first, count);
#pragma unroll
    for (int i = 0; i < kPack; i += 2) {
      float a = v[i];
      v[i] = -v[i + 1];
      v[i + 1] = a;
    }
    store(y + first, v, count);
  }
};

/// The loops around a row; neighbouring loops that are contiguous in all tensors are joined.
struct RotaryLoops {
  Divisor size[kMaxDims];
  int64_t y[kMaxDims], x[kMaxDims], cos[kMaxDims], sin[kMaxDims];
  int count = 0;

  void add(int64_t n, int64_t yStride, int64_t xStride, int64_t cosStride, int64_t sinStride) {
    int last = count - 1;
    if (n == 1)
      return;
    if (count > 0 && y[last] == n * yStride && x[last] == n * xStride &&
        cos[last] == n * cosStride && sin[last] == n * sinStride)
      n *= size[last--];
    count = last + 1;
    size[count] = n;
    y[count] = yStride;
    x[count] = xStride;
    cos[count] = cosStride;
    sin[count++] = sinStride;
  }
};

/// The start of a thread's row.
template <typename T> struct RotaryRow {
  T *y;
  const T *x;
  const float *cos, *sin;

  __device__ void find(int64_t row, const RotaryLoops &loops) {
    for (int i = loops.count - 1; i >= 0; --i) {
      int64_t outer = loops.size[i].quotient(row), at = row - outer * loops.size[i];
      y += at * loops.y[i];
      x += at * loops.x[i];
      cos += at * loops.cos[i];
      sin += at * loops.sin[i];
      row = outer;
    }
  }
};

/// Turns one pair. Forward, each result uses the sine of its own position; backward, of the other.
template <Turn turn>
__device__ inline void turnPair(float &a, float &b, float cosA, float cosB, float sinA,
                                float sinB) {
  float first = turn == Turn::Forth ? a * cosA - b * sinA : a * cosA + b * sinB;
  b = turn == Turn::Forth ? b * cosB + a * sinB : b * cosB - a * sinA;
  a = first;
}

/// Turns a pack of first elements and one of second ones per thread.
template <Turn turn, typename T>
__global__ void rotaryHalves(RotaryRow<T> at, RotaryLoops loops, int64_t rows, int64_t half,
                             Divisor packs) {
  int64_t number = globalThread(), row = packs.quotient(number);
  int64_t first = (number - row * packs) * kPack, count = half - first;
  if (row >= rows)
    return;
  at.find(row, loops);
  Pack<T, kPack> firsts, seconds;
  loadBits(firsts, at.x + first, count);
  loadBits(seconds, at.x + half + first, count);
  float a[kPack], b[kPack], cosA[kPack], cosB[kPack], sinA[kPack], sinB[kPack];
  load(cosA, at.cos + first, count);
  load(cosB, at.cos + half + first, count);
  load(sinA, at.sin + first, count);
  load(sinB, at.sin + half + first, count);
  widen(a, firsts);
  widen(b, seconds);
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    turnPair<turn>(a[i], b[i], cosA[i], cosB[i], sinA[i], sinB[i]);
  store(at.y + first, a, count);
  store(at.y + half + first, b, count);
}

/// Turns a pack of adjacent pairs per thread.
template <Turn turn, typename T>
__global__ void rotaryInterleaved(RotaryRow<T> at, RotaryLoops loops, int64_t rows, int64_t half,
                                  Divisor packs) {
  int64_t number = globalThread(), row = packs.quotient(number);
  int64_t first = (number - row * packs) * kPack, count = 2 * half - first;
  if (row >= rows)
    return;
  at.find(row, loops);
  Pack<T, kPack> bits;
  loadBits(bits, at.x + first, count);
  float v[kPack], cos[kPack], sin[kPack];
  load(cos, at.cos + first, count);
  load(sin, at.sin + first, count);
  widen(v, bits);
#pragma unroll
  for (int i = 0; i < kPack; i += 2)
    turnPair<turn>(v[i], v[i + 1], cos[i], cos[i + 1], sin[i], sin[i + 1]);
  store(at.y + first, v, count);
}

template <Turn turn, typename T>
void launchRotary(const Stream &stream, const RotaryRow<T> &at, const RotaryLoops &loops,
                  int64_t rows, int64_t half, Pairs pairs) {
  bool halves = pairs == Pairs::Halves;
  int64_t packs = ceilDiv(halves ? half : 2 * half, kPack), threads = rows * packs;
  if (threads == 0)
    return;
  dim3 grid = gridOf(ceilDiv(threads, kElementwiseThreads));
  if (halves)
    PARTITA_RT_LAUNCH((rotaryHalves<turn, T>), grid, kElementwiseThreads, 0, stream, at, loops,
                      rows, half, packs);
  else
    PARTITA_RT_LAUNCH((rotaryInterleaved<turn, T>), grid, kElementwiseThreads, 0, stream, at, loops,
                      rows, half, packs);
}

} // namespace

template <typename T>
void rotateHalf(const Stream &stream, T *y, const T *x, int64_t rows, int64_t width, Pairs pairs) {
  if (width % 2 != 0)
    fail("rotateHalf: rows of %lld elements are not pairs", (long long)width);
  if (pairs == Pairs::Interleaved)
    return launchElementwise<kPack>(stream, rows * width, RotateInterleaved<T>{y, x});
  int64_t packs = ceilDiv(width / 2, kPack), threads = rows * packs;
  if (threads > 0)
    PARTITA_RT_LAUNCH(rotateHalves<T>, gridOf(ceilDiv(threads, kElementwiseThreads)),
                      kElementwiseThreads, 0, stream, y, x, rows, width / 2, packs);
}

template <typename T>
void rotary(const Stream &stream, T *y, const Shape &yStrides, const T *x, const Shape &xStrides,
            const float *cos, const Shape &cosStrides, const float *sin, const Shape &sinStrides,
            const Shape &shape, Pairs pairs, Turn turn) {
  int64_t width = shape.rank > 0 ? shape[shape.rank - 1] : 0, rows = 1;
  if (width % 2 != 0)
    fail("rotary: rows of %lld elements are not pairs", (long long)width);
  RotaryLoops loops;
  for (int i = 0; i + 1 < shape.rank; ++i) {
    loops.add(shape[i], yStrides[i], xStrides[i], cosStrides[i], sinStrides[i]);
    rows *= shape[i];
  }
  RotaryRow<T> at{y, x, cos, sin};
  if (turn == Turn::Forth)
    launchRotary<Turn::Forth>(stream, at, loops, rows, width / 2, pairs);
  else
    launchRotary<Turn::Back>(stream, at, loops, rows, width / 2, pairs);
}

#define ROTARY(T)                                                                                  \
  template void rotateHalf(const Stream &, T *, const T *, int64_t, int64_t, Pairs);               \
  template void rotary(const Stream &, T *, const Shape &, const T *, const Shape &,               \
                       const float *, const Shape &, const float *, const Shape &, const Shape &,  \
                       Pairs, Turn);
FOR_STORAGE(ROTARY)
#undef ROTARY

} // namespace partita_rt::cuda
