// Scalar float functions that vectorize: g++ maps these libm calls to libmvec's vector versions
// (8 lanes with AVX2, 16 with AVX-512) in loops such as
//
//     for (int64_t i = 0; i < n; ++i)
//       y[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978846f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
//
// under -O3 -fno-math-errno -march=native, without -ffast-math: infinities and NaN are handled
// correctly (exp(-inf) = 0). Errors are below 4 units in the last place.
//
// Emitted code uses the C names: expf logf tanhf erff powf sinf cosf log1pf expm1f exp2f log2f, and
// sqrtf fabsf floorf ceilf, which are instructions. sqrtf(x), 1.0f/x and comparisons are exact.
//
// A division that stays in a small range (silu, sigmoid), and the tanh of a GELU, are functions of
// their own: GPUs compute them in a few instructions, with the errors that are stated there.

#ifndef PARTITA_RT_MATH_H
#define PARTITA_RT_MATH_H

#include "partita_rt/exact_steps.h"
#include "partita_rt/host_device.h"

#include <math.h>
#include <stdint.h>

#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && defined(__x86_64__)
#define PARTITA_RT_SIMD __attribute__((simd("notinbranch")))
extern "C" {
PARTITA_RT_SIMD float expf(float) noexcept;
PARTITA_RT_SIMD float exp2f(float) noexcept;
PARTITA_RT_SIMD float expm1f(float) noexcept;
PARTITA_RT_SIMD float logf(float) noexcept;
PARTITA_RT_SIMD float log2f(float) noexcept;
PARTITA_RT_SIMD float log1pf(float) noexcept;
PARTITA_RT_SIMD float tanhf(float) noexcept;
PARTITA_RT_SIMD float erff(float) noexcept;
PARTITA_RT_SIMD float powf(float, float) noexcept;
PARTITA_RT_SIMD float sinf(float) noexcept;
PARTITA_RT_SIMD float cosf(float) noexcept;
}
#undef PARTITA_RT_SIMD
#endif

namespace partita_rt {

/// 1 / x and 2^x in one instruction of a GPU, to 1 and 2 units in the last place; 0 for results below the
/// normal floats.
PARTITA_RT_HOST_DEVICE inline float fastReciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / x;
#endif
}
PARTITA_RT_HOST_DEVICE inline float powerOfTwo(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}
/// a / (1 + e), given 1 / x.
template <typename Reciprocal>
PARTITA_RT_HOST_DEVICE inline float overOnePlusBy(float a, float e, Reciprocal over) {
  return a * over(1.0f + e);
}
/// a / (1 + e), e >= 0. On a GPU within 2 units in the last place of the division, which would be a call;
/// 0 if 1 / (1 + e) is below the normal floats.
PARTITA_RT_HOST_DEVICE inline float over_one_plus(float a, float e) {
#if defined(__CUDA_ARCH__)
  return overOnePlusBy(a, e, fastReciprocal);
#else
  return a / (1.0f + e);
#endif
}
/// tanh(x) = 1 - 2 / (1 + e^2x), given 2^x and 1 / x. If these are off by at most 2 and 1 units in the last
/// place, the absolute error is below 2^-20, not the relative one near 0.
template <typename Power, typename Reciprocal>
PARTITA_RT_HOST_DEVICE inline float tanhBy(float x, Power power, Reciprocal over) {
  return 1.0f - 2.0f * over(1.0f + power(2.8853900817779268f * x));
}
/// tanh(x), for sums with numbers near 1, as of a GELU: on a GPU by tanhBy.
PARTITA_RT_HOST_DEVICE inline float near_tanh(float x) {
#if defined(__CUDA_ARCH__)
  return tanhBy(x, powerOfTwo, fastReciprocal);
#else
  return tanhf(x);
#endif
}
/// 1 / (1 + exp(-x)); 0 and 1 at the infinities.
PARTITA_RT_HOST_DEVICE inline float sigmoid(float x) { return over_one_plus(1.0f, expf(-x)); }
/// 1 / sqrt(x), correctly rounded division.
PARTITA_RT_HOST_DEVICE inline float reciprocalSqrt(float x) { return 1.0f / sqrtf(x); }
/// IEEE maximum and minimum that propagate NaN, as ONNX's Max and Min do (fmaxf does not).
PARTITA_RT_HOST_DEVICE inline float maximum(float a, float b) { return a > b || a != a ? a : b; }
PARTITA_RT_HOST_DEVICE inline float minimum(float a, float b) { return a < b || a != a ? a : b; }
PARTITA_RT_HOST_DEVICE inline double maximum(double a, double b) { return a > b || a != a ? a : b; }
PARTITA_RT_HOST_DEVICE inline int64_t maximum(int64_t a, int64_t b) { return a > b ? a : b; }
PARTITA_RT_HOST_DEVICE inline int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }
PARTITA_RT_HOST_DEVICE inline int32_t maximum(int32_t a, int32_t b) { return a > b ? a : b; }
PARTITA_RT_HOST_DEVICE inline int32_t minimum(int32_t a, int32_t b) { return a < b ? a : b; }
/// Returns c ? a : b with both evaluated: a blend when vectorized.
PARTITA_RT_HOST_DEVICE inline float select(bool c, float a, float b) { return c ? a : b; }
PARTITA_RT_HOST_DEVICE inline double select(bool c, double a, double b) { return c ? a : b; }
PARTITA_RT_HOST_DEVICE inline int64_t select(bool c, int64_t a, int64_t b) { return c ? a : b; }
PARTITA_RT_HOST_DEVICE inline int32_t select(bool c, int32_t a, int32_t b) { return c ? a : b; }
PARTITA_RT_HOST_DEVICE inline bool select(bool c, bool a, bool b) { return c ? a : b; }
/// ExactSteps::contains of whole numbers, as the scalars of an update are.
PARTITA_RT_HOST_DEVICE inline bool exact_step(double step, double until, double doubling) {
  return ExactSteps{int64_t(until), int64_t(doubling)}.contains(int64_t(step));
}
/// ExactSteps::count, likewise.
PARTITA_RT_HOST_DEVICE inline double exact_steps(double until, double doubling) {
  return double(ExactSteps{int64_t(until), int64_t(doubling)}.count());
}
/// Divides integers, truncating toward zero; the remainder has the sign of a. Both are 0 if b is 0,
/// and neither traps: the smallest integer over -1 wraps.
PARTITA_RT_HOST_DEVICE inline int64_t quotient(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
}
PARTITA_RT_HOST_DEVICE inline int64_t rest(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
PARTITA_RT_HOST_DEVICE inline int32_t quotient(int32_t a, int32_t b) {
  return static_cast<int32_t>(quotient(int64_t{a}, int64_t{b}));
}
PARTITA_RT_HOST_DEVICE inline int32_t rest(int32_t a, int32_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
PARTITA_RT_HOST_DEVICE inline float rest(float a, float b) { return fmodf(a, b); }
/// The remainder of a / b with the sign of b (Python's %).
PARTITA_RT_HOST_DEVICE inline int64_t modulo(int64_t a, int64_t b) {
  int64_t left = rest(a, b);
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}
PARTITA_RT_HOST_DEVICE inline int32_t modulo(int32_t a, int32_t b) {
  return static_cast<int32_t>(modulo(int64_t{a}, int64_t{b}));
}
/// The derivative of the tanh form of GELU at x, given t = tanh(0.7978845608 (x + 0.044715 x^3)).
PARTITA_RT_HOST_DEVICE inline float gelu_tanh_slope(float x, float t) {
  return 0.5f * (1.0f + t) +
         0.5f * x * (1.0f - t * t) * 0.7978845608028654f * (1.0f + 0.134145f * x * x);
}
/// The derivative of x s at x, given s = sigmoid(x).
PARTITA_RT_HOST_DEVICE inline float silu_slope(float x, float s) {
  return s * (1.0f + x * (1.0f - s));
}
/// The smallest power of two from 2^-50 to 2^60 that is not below max / 1.75, times `unit`;
/// `initial` if max is 0. For finite numbers that are not negative.
PARTITA_RT_HOST_DEVICE inline float fp8_scale(float max, float unit, float initial) {
  // 1.75 has the mantissa 0x600000: adding 0x1fffff raises the exponent of what is above it.
  uint32_t bits = (__builtin_bit_cast(uint32_t, max) + 0x1fffffu) & 0x7f800000u;
  bits = bits < 0x26800000u ? 0x26800000u : bits > 0x5d800000u ? 0x5d800000u : bits;
  return max == 0.0f ? initial : __builtin_bit_cast(float, bits) * unit;
}
/// -1, 0 or 1; NaN for NaN.
PARTITA_RT_HOST_DEVICE inline float sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }

} // namespace partita_rt

#endif // PARTITA_RT_MATH_H
