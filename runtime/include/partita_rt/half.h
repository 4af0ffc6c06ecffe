// 16-bit floating-point numbers as storage: Half (IEEE binary16) and BFloat16 (the upper half of a
// float). Values are computed with in float: reading converts, exactly; assigning a float rounds it
// once, to the nearest, ties to even. Values beyond the max become infinity (from 65520 on in a
// Half), NaN stays NaN (quiet, with the upper bits of its payload), subnormals are kept.
//
//     for (int64_t i = 0; i < n; ++i)
//       y[i] = 0.5f * x[i];            // the same text for float, Half and BFloat16
//
// Conversions are arithmetic on bits without branches, which g++ vectorizes in such loops; it does
// not vectorize F16C's instructions, nor _Float16 without AVX512-FP16. The runtime's own kernels
// use F16C where the processor has it (cpu/kernels/vector.h): the bits are the same. So are those of the GPU
// instructions that kernels use, except for NaN, which has one payload there.

#ifndef PARTITA_RT_HALF_H
#define PARTITA_RT_HALF_H

#include "partita_rt/host_device.h"
#include "partita_rt/types.h"

#include <type_traits>

namespace partita_rt {

namespace half {

PARTITA_RT_HOST_DEVICE inline uint32_t bitsOf(float x) { return __builtin_bit_cast(uint32_t, x); }
PARTITA_RT_HOST_DEVICE inline float fromBits(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

/// Computes condition ? a : b with masks: g++ compiles a conditional expression that contains an
/// addition to a branch, and then does not vectorize.
PARTITA_RT_HOST_DEVICE inline int32_t pick(bool condition, int32_t a, int32_t b) {
  return (a & -int32_t(condition)) | (b & ~-int32_t(condition));
}

/// Returns the value of a Half's bits as a float.
PARTITA_RT_HOST_DEVICE inline float widen(uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
#else
  int32_t sign = int32_t(uint32_t(bits & 0x8000) << 16), rest = int32_t(bits & 0x7fff) << 13;
  int32_t normal = rest + ((127 - 15) << 23);
  int32_t special = pick(rest > 0x0f800000, rest | 0x7fc00000, 0x7f800000);
  // A subnormal is m * 2^-24: 0.5 + m * 2^-24 is exact, and so is the difference.
  int32_t small = int32_t(bitsOf(fromBits(uint32_t(rest >> 13) | 0x3f000000u) - 0.5f));
  int32_t magnitude = pick(rest < 0x00800000, small, pick(rest >= 0x0f800000, special, normal));
  return fromBits(uint32_t(sign | magnitude));
#endif
}

/// Returns the bits of the Half nearest to x.
PARTITA_RT_HOST_DEVICE inline uint16_t round(float x) {
#if defined(__CUDA_ARCH__)
  uint16_t rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
  return rounded;
#else
  uint32_t bits = bitsOf(x);
  int32_t rest = int32_t(bits & 0x7fffffffu);
  int32_t normal = (rest - ((127 - 15) << 23) + 0xfff + ((rest >> 13) & 1)) >> 13;
  int32_t special = pick(rest > 0x7f800000, 0x7e00 | ((rest >> 13) & 0x3ff), 0x7c00);
  // Below the smallest normal: after adding 0.5, the float's own rounding is at 2^-24.
  int32_t small = int32_t(bitsOf(fromBits(uint32_t(rest)) + 0.5f)) - 0x3f000000;
  int32_t magnitude = pick(rest >= 0x47800000, special, pick(rest < 0x38800000, small, normal));
  return uint16_t(uint32_t(magnitude) | (bits >> 31 << 15));
#endif
}

} // namespace half

/// IEEE binary16: 11 bits of precision, largest 65504, smallest normal 2^-14.
struct Half {
  uint16_t bits;

  Half() = default;
  PARTITA_RT_HOST_DEVICE explicit Half(float x) : bits(half::round(x)) {}
  PARTITA_RT_HOST_DEVICE Half &operator=(float x) {
    bits = half::round(x);
    return *this;
  }
  PARTITA_RT_HOST_DEVICE operator float() const { return half::widen(bits); }
};

/// The upper half of a float: 8 bits of precision, float's range.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  PARTITA_RT_HOST_DEVICE explicit BFloat16(float x) : bits(nearest(x)) {}
  PARTITA_RT_HOST_DEVICE BFloat16 &operator=(float x) {
    bits = nearest(x);
    return *this;
  }
  PARTITA_RT_HOST_DEVICE operator float() const { return half::fromBits(uint32_t(bits) << 16); }

private:
  PARTITA_RT_HOST_DEVICE static uint16_t nearest(float x) {
#if defined(__CUDA_ARCH__)
    uint16_t rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
    return rounded;
#else
    uint32_t u = half::bitsOf(x);
    uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u), quiet = u | 0x00400000u;
    return uint16_t(((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) >> 16);
#endif
  }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2, "they are storage");

/// Rounds x to one of the two BFloat16 around it, chosen by `random` (uniform): the mean over all
/// 65536 random numbers is x, if infinity counts as 2^128. Infinities and NaN are kept.
PARTITA_RT_HOST_DEVICE inline BFloat16 roundStochastically(float x, uint16_t random) {
  uint32_t u = half::bitsOf(x), magnitude = u & 0x7fffffffu;
  uint32_t special = magnitude > 0x7f800000u ? u | 0x00400000u : u;
  BFloat16 result;
  result.bits = uint16_t((magnitude >= 0x7f800000u ? special : u + random) >> 16);
  return result;
}

/// The DType of a tensor's C++ type. There is no default: other types do not compile.
template <typename T> struct DTypeOf;
template <> struct DTypeOf<float> : std::integral_constant<DType, DType::Float32> {};
template <> struct DTypeOf<double> : std::integral_constant<DType, DType::Float64> {};
template <> struct DTypeOf<Half> : std::integral_constant<DType, DType::Float16> {};
template <> struct DTypeOf<BFloat16> : std::integral_constant<DType, DType::BFloat16> {};
template <> struct DTypeOf<int32_t> : std::integral_constant<DType, DType::Int32> {};
template <> struct DTypeOf<int64_t> : std::integral_constant<DType, DType::Int64> {};
template <> struct DTypeOf<int8_t> : std::integral_constant<DType, DType::UInt8> {}; ///< bytes
template <> struct DTypeOf<bool> : std::integral_constant<DType, DType::Bool> {};
template <typename T> inline constexpr DType kDTypeOf = DTypeOf<T>::value;

} // namespace partita_rt

#endif // PARTITA_RT_HALF_H
