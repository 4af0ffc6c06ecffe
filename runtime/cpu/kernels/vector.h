// Sixteen float lanes with g++'s vector extensions: one AVX-512 register, two AVX ones, four of
// SSE. Sums use sixteen accumulators in a fixed tree on every processor, because g++ does not
// reorder float additions by itself (and must not: results are part of the contract).
//
// 16-bit elements are lanes of float too: a load widens, a store rounds (half.h), so a kernel has
// one source for all storage types, which differ only in the last rounding.

#ifndef PARTITA_RT_CPU_KERNELS_VECTOR_H
#define PARTITA_RT_CPU_KERNELS_VECTOR_H

#include "common/convert.h"
#include "partita_rt/half.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#ifdef __AVX__
#include <immintrin.h>
#endif

namespace partita_rt {

constexpr int64_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t IntLanes __attribute__((vector_size(64)));
typedef float LooseLanes __attribute__((vector_size(64), aligned(4), may_alias));

inline Lanes load(const float *p) { return *reinterpret_cast<const LooseLanes *>(p); }
inline void store(float *p, Lanes x) { *reinterpret_cast<LooseLanes *>(p) = x; }

#if defined(__AVX512F__)
typedef uint16_t ShortLanes __attribute__((vector_size(32)));
typedef uint16_t LooseShorts __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint32_t BitLanes __attribute__((vector_size(64)));

inline Lanes load(const BFloat16 *p) {
  auto bits = *reinterpret_cast<const LooseShorts *>(p);
  return Lanes(__builtin_convertvector(ShortLanes(bits), BitLanes) << 16);
}
inline void store(BFloat16 *p, Lanes x) {
  auto u = BitLanes(x);
  BitLanes rounded = u + 0x7fffu + ((u >> 16) & 1u), quiet = u | 0x00400000u;
  u = IntLanes(u & 0x7fffffffu) > 0x7f800000 ? quiet : rounded;
  *reinterpret_cast<LooseShorts *>(p) = __builtin_convertvector(u >> 16, ShortLanes);
}
inline __m256i shortsAt(const void *p) {
  return _mm256_loadu_si256(static_cast<const __m256i *>(p));
}
inline Lanes load(const Half *p) { return Lanes(_mm512_maskz_cvtph_ps(0xffff, shortsAt(p))); }
inline void store(Half *p, Lanes x) {
  auto bits = _mm512_maskz_cvtps_ph(0xffff, __m512(x), _MM_FROUND_TO_NEAREST_INT);
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), bits);
}
#elif defined(__AVX2__) && defined(__F16C__)
struct TwoVectors {
  __m256 low, high;
};
inline __m128i shortsAt(const void *p, int64_t half) {
  return _mm_loadu_si128(static_cast<const __m128i *>(p) + half);
}
inline __m256 widenBFloat16(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline __m128i roundBFloat16(__m256 x) {
  auto u = _mm256_castps_si256(x);
  auto odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  auto rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
  auto quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x00400000));
  auto isNaN = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  auto bits = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, isNaN), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}
inline Lanes load(const BFloat16 *p) {
  return __builtin_bit_cast(
      Lanes, TwoVectors{widenBFloat16(shortsAt(p, 0)), widenBFloat16(shortsAt(p, 1))});
}
inline void store(BFloat16 *p, Lanes x) {
  auto both = __builtin_bit_cast(TwoVectors, x);
  auto low = roundBFloat16(both.low), high = roundBFloat16(both.high);
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), _mm256_set_m128i(high, low));
}
inline Lanes load(const Half *p) {
  return __builtin_bit_cast(
      Lanes, TwoVectors{_mm256_cvtph_ps(shortsAt(p, 0)), _mm256_cvtph_ps(shortsAt(p, 1))});
}
inline void store(Half *p, Lanes x) {
  auto both = __builtin_bit_cast(TwoVectors, x);
  auto low = _mm256_cvtps_ph(both.low, _MM_FROUND_TO_NEAREST_INT);
  auto high = _mm256_cvtps_ph(both.high, _MM_FROUND_TO_NEAREST_INT);
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), _mm256_set_m128i(high, low));
}
#else
template <typename T> inline Lanes load(const T *p) {
  Lanes x;
  for (int64_t i = 0; i < kLanes; ++i)
    x[i] = p[i];
  return x;
}
template <typename T> inline void store(T *p, Lanes x) {
  for (int64_t i = 0; i < kLanes; ++i)
    p[i] = x[i];
}
#endif

/// x as a result of its own: the compiler may not contract its last multiplication with an addition
/// that follows. A kernel that adds its result to another value does so as if it had stored it
/// first, so a program has the same bits whether the sum is fused or not (pipeline stages).
inline Lanes rounded(Lanes x) { return __builtin_assoc_barrier(x); }

/// Not `Lanes{} + x`: that is an addition (also for -0.0); this is one instruction from memory.
inline Lanes splat(float x) { return Lanes{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
inline Lanes maximum(Lanes a, Lanes b) { return a > b ? a : b; }

/// Loads the first n (< 16) elements; the other lanes are `rest`.
inline Lanes loadPart(const float *p, int64_t n, float rest) {
  Lanes x = splat(rest);
  std::memcpy(&x, p, size_t(n) * sizeof(float));
  return x;
}
inline void storePart(float *p, Lanes x, int64_t n) {
  std::memcpy(p, &x, size_t(n) * sizeof(float));
}

template <typename T> inline Lanes loadPart(const T *p, int64_t n, float rest) {
  Lanes x = splat(rest);
  for (int64_t i = 0; i < n; ++i)
    x[i] = p[i];
  return x;
}
template <typename T> inline void storePart(T *p, Lanes x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    p[i] = x[i];
}

/// Adds lane i + 8 to lane i, then i + 4, i + 2, i + 1: the same tree on every processor.
inline Lanes foldLanes8(Lanes x) {
  return __builtin_shuffle(x, IntLanes{8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7});
}
inline Lanes foldLanes4(Lanes x) {
  return __builtin_shuffle(x, IntLanes{4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11});
}
inline Lanes foldLanes2(Lanes x) {
  return __builtin_shuffle(x, IntLanes{2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13});
}
inline Lanes foldLanes1(Lanes x) {
  return __builtin_shuffle(x, IntLanes{1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14});
}

inline float sumLanes(Lanes x) {
  x += foldLanes8(x);
  x += foldLanes4(x);
  x += foldLanes2(x);
  x += foldLanes1(x);
  return x[0];
}

inline float maxLanes(Lanes x) {
  x = maximum(x, foldLanes8(x));
  x = maximum(x, foldLanes4(x));
  x = maximum(x, foldLanes2(x));
  x = maximum(x, foldLanes1(x));
  return x[0];
}

/// Returns the first n lanes of x, and `rest` in the others.
inline Lanes firstLanes(Lanes x, int64_t n, float rest) {
  const IntLanes lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return lane < IntLanes{} + int32_t(n) ? x : splat(rest);
}

/// Returns exp(x), below 2 units in the last place; 0 below -87.3 (no denormals), NaN for NaN, inf
/// above 88.37 (a third of a unit of x early: nothing here exponentiates large positive numbers). n
/// = round(x / ln 2), r = x - n ln 2 in two parts, exp(r) by Cephes' minimax polynomial.
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

#endif // PARTITA_RT_CPU_KERNELS_VECTOR_H
