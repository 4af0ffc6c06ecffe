// Sixteen float lanes with g++'s vector extensions: one AVX-512 register, two AVX ones, four of
// SSE. Sums use sixteen accumulators in a fixed tree on every processor, because g++ does not
// reorder float additions by itself (and must not: results are part of the contract).

#ifndef PARTITA_RT_CPU_VECTOR_H
#define PARTITA_RT_CPU_VECTOR_H

#include <cstdint>
#include <cstring>
#include <limits>

namespace partita_rt {

constexpr int64_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t IntLanes __attribute__((vector_size(64)));
typedef float LooseLanes __attribute__((vector_size(64), aligned(4), may_alias));

inline Lanes load(const float *p) { return *reinterpret_cast<const LooseLanes *>(p); }
inline void store(float *p, Lanes x) { *reinterpret_cast<LooseLanes *>(p) = x; }
inline Lanes splat(float x) { return Lanes{} + x; }
inline Lanes maximum(Lanes a, Lanes b) { return a > b ? a : b; }

/// The first n (< 16) elements; `rest` in the other lanes.
inline Lanes loadPart(const float *p, int64_t n, float rest) {
  Lanes x = splat(rest);
  std::memcpy(&x, p, size_t(n) * sizeof(float));
  return x;
}
inline void storePart(float *p, Lanes x, int64_t n) {
  std::memcpy(p, &x, size_t(n) * sizeof(float));
}

inline float sumLanes(Lanes x) {
  float s[kLanes];
  std::memcpy(s, &x, sizeof(s));
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i)
      s[i] += s[i + width];
  return s[0];
}

inline float maxLanes(Lanes x) {
  float s[kLanes];
  std::memcpy(s, &x, sizeof(s));
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i)
      s[i] = s[i] > s[i + width] ? s[i] : s[i + width];
  return s[0];
}

/// exp(x), below 2 units in the last place; 0 below -87.3 (no denormals), NaN for NaN, inf above
/// 88.37 (a third of a unit of x early: nothing here exponentiates large positive numbers).
/// n = round(x / ln 2), r = x - n ln 2 in two parts, exp(r) by Cephes' minimax polynomial.
inline Lanes expLanes(Lanes x) {
  const Lanes magic = splat(12582912.0f); // 1.5 * 2^23: adding it rounds to an integer
  Lanes clipped = x < splat(-87.3f) ? splat(-87.3f) : x; // keeps NaN
  clipped = clipped > splat(88.37f) ? splat(88.37f) : clipped;
  Lanes t = clipped * splat(1.44269504f) + magic;
  Lanes n = t - magic;
  Lanes r = clipped - n * splat(0.693359375f);
  r = r - n * splat(-2.12194440e-4f);
  Lanes p = splat(1.9875691500e-4f);
  p = p * r + splat(1.3981999507e-3f);
  p = p * r + splat(8.3334519073e-3f);
  p = p * r + splat(4.1665795894e-2f);
  p = p * r + splat(1.6666665459e-1f);
  p = p * r + splat(5.0000001201e-1f);
  p = p * (r * r) + r + splat(1.0f);
  // 2^n: t's low mantissa bits hold n; for NaN the factor is arbitrary and p is NaN.
  IntLanes bits;
  std::memcpy(&bits, &t, sizeof(bits));
  bits = (bits + 127) << 23;
  Lanes scale;
  std::memcpy(&scale, &bits, sizeof(scale));
  Lanes y = p * scale;
  y = x < splat(-87.3f) ? splat(0.0f) : y;
  return x > splat(88.37f) ? splat(std::numeric_limits<float>::infinity()) : y;
}

} // namespace partita_rt

#endif // PARTITA_RT_CPU_VECTOR_H
