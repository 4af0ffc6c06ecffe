// Reductions. Every sum has one fixed order: sixteen lanes inside blocks, the blocks in sequence.

#include "partita_rt/kernels.h"

#include "cpu/kernels/rows.h"
#include "cpu/kernels/storage.h"
#include "partita_rt/math.h"

namespace partita_rt {

namespace {

constexpr int64_t kElementBlock = 4096; ///< elements of a row that are summed separately

template <typename T> float blockedSum(const T *x, int64_t n) {
  float sum = 0.0f;
  for (int64_t begin = 0; begin < n; begin += kElementBlock)
    sum += rowSum(x + begin, std::min(kElementBlock, n - begin));
  return sum;
}

template <typename T, typename Transform>
double blockedDouble(const T *x, int64_t n, Transform transform) {
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kElementBlock) {
    int64_t count = std::min(kElementBlock, n - begin);
    double lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] += transform(double(float(x[begin + i + lane])));
    for (; i < count; ++i)
      lanes[i % kLanes] += transform(double(float(x[begin + i])));
    double sum = 0.0;
    for (double lane : lanes)
      sum += lane;
    total += sum;
  }
  return total;
}

/// y[width] (+)= column sums of x.
template <typename T>
void addColumns(float *y, const T *x, int64_t rows, int64_t width, int64_t stride, Write write) {
  if (write == Write::Set)
    fill(y, 0.0f, width);
  for (int64_t row = 0; row < rows; row += kSumRows) {
    int64_t end = std::min(rows, row + kSumRows);
    int64_t i = 0;
    for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
      Lanes a{}, b{}, c{}, d{};
      for (int64_t r = row; r < end; ++r) {
        const T *p = x + r * stride + i;
        a += load(p);
        b += load(p + kLanes);
        c += load(p + 2 * kLanes);
        d += load(p + 3 * kLanes);
      }
      store(y + i, load(y + i) + a);
      store(y + i + kLanes, load(y + i + kLanes) + b);
      store(y + i + 2 * kLanes, load(y + i + 2 * kLanes) + c);
      store(y + i + 3 * kLanes, load(y + i + 3 * kLanes) + d);
    }
    for (; i < width; i += kLanes) {
      int64_t n = std::min(kLanes, width - i);
      Lanes a{};
      for (int64_t r = row; r < end; ++r)
        a += loadUpTo(x + r * stride + i, n);
      storeUpTo(y + i, loadUpTo(y + i, n) + a, n);
    }
  }
}

/// Computes column sums, and calls `finish(sums, n)` before they are rounded.
template <typename Y, typename T, typename Finish>
void columns(Y *y, const T *x, int64_t rows, int64_t width, int64_t stride, Write write,
             Finish finish) {
  throughFloat(y, width, write == Write::Add, [&](float *sums, int64_t first, int64_t n) {
    addColumns(sums, x + first, rows, n, stride, write);
    finish(sums, n);
  });
}

} // namespace

template <typename Y, typename T>
void columnSum(Y *y, const T *x, int64_t rows, int64_t width, int64_t stride, Write write) {
  columns(y, x, rows, width, stride, write, [](float *, int64_t) {});
}

template <typename Y, typename T>
void reduceSum(Y *y, const T *x, int64_t outer, int64_t n, int64_t inner, Write write) {
  for (int64_t o = 0; o < outer; ++o)
    if (inner == 1)
      y[o] = (write == Write::Add ? float(y[o]) : 0.0f) + blockedSum(x + o * n, n);
    else
      columnSum(y + o * inner, x + o * n * inner, n, inner, inner, write);
}

template <typename Y, typename T>
void reduceMean(Y *y, const T *x, int64_t outer, int64_t n, int64_t inner) {
  for (int64_t o = 0; o < outer; ++o)
    if (inner == 1)
      y[o] = (0.0f + blockedSum(x + o * n, n)) / float(n);
    else
      columns(y + o * inner, x + o * n * inner, n, inner, inner, Write::Set,
              [n](float *sums, int64_t count) {
                for (int64_t i = 0; i < count; ++i)
                  sums[i] /= float(n);
              });
}

/// Returns the largest element; NaN if one is (rowMax is for softmax, whose sums keep NaN).
template <typename T> static float largestOf(const T *x, int64_t n) {
  bool isNan = false;
  for (int64_t i = 0; i < n; ++i)
    isNan |= float(x[i]) != float(x[i]);
  return isNan ? std::numeric_limits<float>::quiet_NaN() : rowMax(x, n);
}

template <typename Y, typename T>
void reduceMax(Y *y, const T *x, int64_t outer, int64_t n, int64_t inner) {
  for (int64_t o = 0; o < outer; ++o) {
    if (inner == 1) {
      y[o] = largestOf(x + o * n, n);
      continue;
    }
    Y *out = y + o * inner;
    fill(out, -std::numeric_limits<float>::infinity(), inner);
    for (int64_t r = 0; r < n; ++r) {
      const T *in = x + (o * n + r) * inner;
      for (int64_t i = 0; i < inner; ++i)
        out[i] = maximum(float(out[i]), float(in[i]));
    }
  }
}

#define REDUCE(Y, T)                                                                               \
  template void columnSum(Y *, const T *, int64_t, int64_t, int64_t, Write);                       \
  template void reduceSum(Y *, const T *, int64_t, int64_t, int64_t, Write);                       \
  template void reduceMean(Y *, const T *, int64_t, int64_t, int64_t);                             \
  template void reduceMax(Y *, const T *, int64_t, int64_t, int64_t);
FOR_RESULTS(REDUCE)
#undef REDUCE

template <typename T> double sumOfSquares(const T *x, int64_t n) {
  return blockedDouble(x, n, [](double value) { return value * value; });
}

#define SQUARE_SUM(T) template double sumOfSquares(const T *, int64_t);
FOR_STORAGE(SQUARE_SUM)
#undef SQUARE_SUM

} // namespace partita_rt
