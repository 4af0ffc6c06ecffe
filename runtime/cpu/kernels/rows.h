// Row-wise building blocks: sums, maxima and exponentials of one contiguous row.

#ifndef PARTITA_RT_CPU_KERNELS_ROWS_H
#define PARTITA_RT_CPU_KERNELS_ROWS_H

#include "cpu/kernels/vector.h"

#include <algorithm>

namespace partita_rt {

/// Rows whose column sums are added up before they join the total. The same for all kernels, so
/// that a bias's gradient has the same bits whichever kernel computes it: in one program the norm
/// whose cotangent it sums; in another, whose pipeline stage begins there, a reduction.
constexpr int64_t kSumRows = 16;

/// Calls body(i, n) for i = 0, 16, 32, ...: n is 16, or less in the last call.
template <typename Body> inline void forLanes(int64_t width, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes)
    body(i, kLanes);
  if (i < width)
    body(i, width - i);
}

template <typename T> inline Lanes loadUpTo(const T *p, int64_t n, float rest = 0.0f) {
  return n == kLanes ? load(p) : loadPart(p, n, rest);
}
template <typename T> inline void storeUpTo(T *p, Lanes x, int64_t n) {
  if (n == kLanes)
    store(p, x);
  else
    storePart(p, x, n);
}

template <typename T> inline float rowSum(const T *x, int64_t width) {
  Lanes sum{};
  forLanes(width, [&](int64_t i, int64_t n) { sum += loadUpTo(x + i, n); });
  return sumLanes(sum);
}

template <typename T> inline float rowMax(const T *x, int64_t width) {
  constexpr float low = -std::numeric_limits<float>::infinity();
  Lanes a = splat(low), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
    a = maximum(load(x + i), a);
    b = maximum(load(x + i + kLanes), b);
    c = maximum(load(x + i + 2 * kLanes), c);
    d = maximum(load(x + i + 3 * kLanes), d);
  }
  a = maximum(maximum(a, b), maximum(c, d));
  forLanes(width - i, [&](int64_t j, int64_t n) { a = maximum(loadUpTo(x + i + j, n, low), a); });
  return maxLanes(a);
}

/// Computes y = exp(scale * x - shift) and returns the sum. In place is allowed.
inline float rowExp(float *y, const float *x, float scale, float shift, int64_t width) {
  Lanes sum{}, more{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    Lanes a = expLanes(load(x + i) * splat(scale) - splat(shift));
    Lanes b = expLanes(load(x + i + kLanes) * splat(scale) - splat(shift));
    store(y + i, a);
    store(y + i + kLanes, b);
    sum += a;
    more += b;
  }
  sum += more;
  forLanes(width - i, [&](int64_t j, int64_t n) {
    Lanes e = expLanes(loadUpTo(x + i + j, n) * splat(scale) - splat(shift));
    storeUpTo(y + i + j, e, n);
    sum += firstLanes(e, n, 0.0f);
  });
  return sumLanes(sum);
}

/// Variants of rowMax and rowExp for rows of tiles, which extend in memory to a full vector: no
/// partial loads. Elements after `width` are ignored; tileExp sets them to 0 up to the next vector.
inline float tileMax(const float *x, int64_t width) {
  constexpr float low = -std::numeric_limits<float>::infinity();
  Lanes a = splat(low), b = a;
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    a = maximum(load(x + i), a);
    b = maximum(load(x + i + kLanes), b);
  }
  for (; i < width; i += kLanes)
    a = maximum(firstLanes(load(x + i), width - i, low), a);
  return maxLanes(maximum(a, b));
}

inline float tileExp(float *x, float scale, float shift, int64_t width) {
  Lanes sum{}, more{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    Lanes a = expLanes(load(x + i) * splat(scale) - splat(shift));
    Lanes b = expLanes(load(x + i + kLanes) * splat(scale) - splat(shift));
    store(x + i, a);
    store(x + i + kLanes, b);
    sum += a;
    more += b;
  }
  for (; i < width; i += kLanes) {
    Lanes e = expLanes(load(x + i) * splat(scale) - splat(shift));
    e = firstLanes(e, width - i, 0.0f);
    store(x + i, e);
    sum += e;
  }
  return sumLanes(sum + more);
}

/// Returns the sum of exp(x - shift).
template <typename T> inline float rowExpSum(const T *x, float shift, int64_t width) {
  Lanes sum{}, more{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    sum += expLanes(load(x + i) - splat(shift));
    more += expLanes(load(x + i + kLanes) - splat(shift));
  }
  sum += more;
  constexpr float low = -std::numeric_limits<float>::infinity();
  forLanes(width - i, [&](int64_t j, int64_t n) {
    sum += expLanes(loadUpTo(x + i + j, n, low) - splat(shift));
  });
  return sumLanes(sum);
}

inline void rowScale(float *x, float factor, int64_t width) {
  for (int64_t i = 0; i < width; ++i)
    x[i] *= factor;
}

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_ROWS_H
