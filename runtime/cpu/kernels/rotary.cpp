// Rotary position embedding, and its quarter turn by itself.

#include "partita_rt/kernels.h"

#include "cpu/kernels/storage.h"

#include <vector>

namespace partita_rt {

template <typename T> void rotateHalf(T *y, const T *x, int64_t rows, int64_t width, Pairs pairs) {
  int64_t half = width / 2;
  for (int64_t row = 0; row < rows; ++row, x += width, y += width)
    if (pairs == Pairs::Halves)
      for (int64_t i = 0; i < half; ++i) {
        y[i] = -x[half + i];
        y[half + i] = x[i];
      }
    else
      for (int64_t i = 0; i < half; ++i) {
        y[2 * i] = -x[2 * i + 1];
        y[2 * i + 1] = x[2 * i];
      }
}

namespace {

/// Turns `half` pairs `step` apart; x's first elements are `apart` before its second ones. y may be
/// x.
void turnRow(float *y, const float *x, const float *cos, const float *sin, int64_t half,
             int64_t apart, int64_t step, Turn turn) {
  // Forward, each result uses the sine of its own position; backward, of the other one.
  const float *sinA = sin, *sinB = sin + apart;
  float sign = 1;
  if (turn == Turn::Back) {
    std::swap(sinA, sinB);
    sign = -1;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < half * step; i += step) {
    float a = x[i], b = x[i + apart];
    y[i] = a * cos[i] - sign * (b * sinA[i]);
    y[i + apart] = b * cos[i + apart] + sign * (a * sinB[i]);
  }
}

} // namespace

template <typename T>
void rotary(T *y, const Shape &yStrides, const T *x, const Shape &xStrides, const float *cos,
            const Shape &cosStrides, const float *sin, const Shape &sinStrides, const Shape &shape,
            Pairs pairs, Turn turn) {
  int64_t width = shape.rank > 0 ? shape[shape.rank - 1] : 0, half = width / 2;
  if (width % 2 != 0)
    fail("rotary: rows of %lld elements are not pairs", (long long)width);
  bool halves = pairs == Pairs::Halves;
  int64_t apart = halves ? half : 1, step = halves ? 1 : 2, index[kMaxDims] = {};
  std::vector<float> row(kIsFloat<T> ? 0 : width);
  int64_t yAt = 0, xAt = 0, cosAt = 0, sinAt = 0;
  for (int64_t done = 0, all = shape.elements(); done < all; done += width) {
    if constexpr (kIsFloat<T>) {
      turnRow(y + yAt, x + xAt, cos + cosAt, sin + sinAt, half, apart, step, turn);
    } else {
      convertArray(row.data(), x + xAt, width);
      turnRow(row.data(), row.data(), cos + cosAt, sin + sinAt, half, apart, step, turn);
      convertArray(y + yAt, row.data(), width);
    }
    for (int d = shape.rank - 2; d >= 0; --d) {
      int64_t steps = 1; // at the end of a dimension, back to its start
      if (++index[d] == shape[d]) {
        steps -= shape[d];
        index[d] = 0;
      }
      yAt += steps * yStrides[d];
      xAt += steps * xStrides[d];
      cosAt += steps * cosStrides[d];
      sinAt += steps * sinStrides[d];
      if (index[d] > 0)
        break;
    }
  }
}

#define ROTARY(T)                                                                                  \
  template void rotateHalf(T *, const T *, int64_t, int64_t, Pairs);                               \
  template void rotary(T *, const Shape &, const T *, const Shape &, const float *, const Shape &, \
                       const float *, const Shape &, const Shape &, Pairs, Turn);
FOR_STORAGE(ROTARY)
#undef ROTARY

} // namespace partita_rt
