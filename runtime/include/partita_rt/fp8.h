// 8-bit floating-point numbers as storage, for the operands of matmuls: Float8E4M3 (4 bits of
// exponent, 3 of mantissa, max 448, no infinity) and Float8E5M2 (max 57344), as in Micikevicius et
// al., arXiv 2209.05433. Reading converts exactly; a float is rounded once, to the nearest, ties to
// even, and saturates: what is beyond the max becomes the max, infinities too. NaN stays NaN.

#ifndef PARTITA_RT_FP8_H
#define PARTITA_RT_FP8_H

#include "partita_rt/half.h"

namespace partita_rt {

namespace fp8 {

/// Returns the bits of the nearest number with `mantissa` bits of mantissa and this bias of the
/// exponent; `most` are the bits of its max.
template <int mantissa, int bias, uint32_t most>
PARTITA_RT_HOST_DEVICE inline uint8_t round(float x) {
  constexpr int shift = 23 - mantissa;
  constexpr int32_t least = (127 + 1 - bias) << 23; // the smallest normal number
  constexpr int32_t largest = int32_t((most << shift) + ((127u - bias) << 23));
  // Below the smallest normal: after adding this, the float's own rounding is at a subnormal's step.
  constexpr int32_t step = (127 + 1 - bias - mantissa + 23) << 23;
  uint32_t bits = half::bitsOf(x);
  int32_t rest = int32_t(bits & 0x7fffffffu);
  int32_t normal =
      (rest - ((127 - bias) << 23) + (1 << (shift - 1)) - 1 + ((rest >> shift) & 1)) >> shift;
  int32_t small =
      int32_t(half::bitsOf(half::fromBits(uint32_t(rest)) + half::fromBits(uint32_t(step)))) - step;
  int32_t finite = half::pick(rest < least, small, normal);
  int32_t saturated = half::pick(rest > largest, int32_t(most), finite);
  return uint8_t(uint32_t(half::pick(rest > 0x7f800000, 0x7f, saturated)) | (bits >> 31 << 7));
}

/// Returns the value of a Float8E4M3's bits.
PARTITA_RT_HOST_DEVICE inline float widenE4M3(uint8_t bits) {
  int32_t sign = int32_t(uint32_t(bits & 0x80) << 24), rest = bits & 0x7f;
  int32_t normal = (rest << 20) + ((127 - 7) << 23);
  // A subnormal is m * 2^-9: 2^14 + m * 2^-9 is exact, and so is the difference.
  int32_t small = int32_t(half::bitsOf(half::fromBits(uint32_t(rest) | 0x46800000u) - 16384.0f));
  int32_t magnitude = half::pick(rest < 8, small, half::pick(rest == 0x7f, 0x7fc00000, normal));
  return half::fromBits(uint32_t(sign | magnitude));
}

} // namespace fp8

/// A number of 8 bits; the parameters are those of fp8::round.
template <int mantissa, int bias, uint32_t most> struct Float8 {
  uint8_t bits;

  Float8() = default;
  PARTITA_RT_HOST_DEVICE explicit Float8(float x) : bits(fp8::round<mantissa, bias, most>(x)) {}
  PARTITA_RT_HOST_DEVICE Float8 &operator=(float x) {
    bits = fp8::round<mantissa, bias, most>(x);
    return *this;
  }
  PARTITA_RT_HOST_DEVICE operator float() const {
    if constexpr (mantissa == 3)
      return fp8::widenE4M3(bits);
    else
      return half::widen(uint16_t(bits << 8)); // the bits are the upper half of a Half's
  }
};

using Float8E4M3 = Float8<3, 7, 0x7e>;
using Float8E5M2 = Float8<2, 15, 0x7b>;

static_assert(sizeof(Float8E4M3) == 1 && sizeof(Float8E5M2) == 1, "they are storage");

template <> struct DTypeOf<Float8E4M3> : std::integral_constant<DType, DType::Float8E4M3> {};
template <> struct DTypeOf<Float8E5M2> : std::integral_constant<DType, DType::Float8E5M2> {};

} // namespace partita_rt

#endif // PARTITA_RT_FP8_H
