// Reductions. Every sum has one fixed order: sixteen lanes inside blocks, the blocks in sequence.

#include "partita_rt/kernels.h"

#include "cpu/rows.h"

namespace partita_rt {

namespace {

constexpr int64_t kRowBlock = 64;       ///< rows whose column sums are kept apart
constexpr int64_t kElementBlock = 4096; ///< elements of a row whose sum is kept apart

float blockedSum(const float *x, int64_t n) {
  float sum = 0.0f;
  for (int64_t begin = 0; begin < n; begin += kElementBlock)
    sum += rowSum(x + begin, std::min(kElementBlock, n - begin));
  return sum;
}

template <typename Transform> double blockedDouble(const float *x, int64_t n, Transform transform) {
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kElementBlock) {
    int64_t count = std::min(kElementBlock, n - begin);
    double lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] += transform(double(x[begin + i + lane]));
    for (; i < count; ++i)
      lanes[i % kLanes] += transform(double(x[begin + i]));
    double sum = 0.0;
    for (double lane : lanes)
      sum += lane;
    total += sum;
  }
  return total;
}

} // namespace

void columnSum(float *y, const float *x, int64_t rows, int64_t width, int64_t stride, Write write) {
  if (write == Write::Set)
    fill(y, 0.0f, width);
  for (int64_t row = 0; row < rows; row += kRowBlock) {
    int64_t end = std::min(rows, row + kRowBlock);
    int64_t i = 0;
    for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
      Lanes a{}, b{}, c{}, d{};
      for (int64_t r = row; r < end; ++r) {
        const float *p = x + r * stride + i;
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

void reduceSum(float *y, const float *x, int64_t outer, int64_t n, int64_t inner, Write write) {
  for (int64_t o = 0; o < outer; ++o)
    if (inner == 1)
      y[o] = (write == Write::Add ? y[o] : 0.0f) + blockedSum(x + o * n, n);
    else
      columnSum(y + o * inner, x + o * n * inner, n, inner, inner, write);
}

void reduceMean(float *y, const float *x, int64_t outer, int64_t n, int64_t inner) {
  reduceSum(y, x, outer, n, inner);
  for (int64_t i = 0; i < outer * inner; ++i)
    y[i] /= float(n);
}

void reduceMax(float *y, const float *x, int64_t outer, int64_t n, int64_t inner) {
  for (int64_t o = 0; o < outer; ++o) {
    if (inner == 1) {
      y[o] = rowMax(x + o * n, n);
      continue;
    }
    float *out = y + o * inner;
    fill(out, -std::numeric_limits<float>::infinity(), inner);
    for (int64_t r = 0; r < n; ++r) {
      const float *in = x + (o * n + r) * inner;
      for (int64_t i = 0; i < inner; ++i)
        out[i] = out[i] > in[i] ? out[i] : in[i];
    }
  }
}

double sumOfSquares(const float *x, int64_t n) {
  return blockedDouble(x, n, [](double value) { return value * value; });
}

double sumAll(const float *x, int64_t n) {
  return blockedDouble(x, n, [](double value) { return value; });
}

} // namespace partita_rt
