// Quantization for matmuls in 8 bits: this target multiplies the same numbers in float (gemm.cpp).

#include "partita_rt/kernels.h"

#include <algorithm>

namespace partita_rt {

/// Calls put(i, x[i] / *scale) for all elements, and raises *max.
template <typename X, typename Put>
static inline void eachQuotient(const X *__restrict x, float scale, float *max, int64_t n,
                                Put put) {
  const float inverse = 1.0f / scale; // exact: a power of two
  int32_t most = 0;                   // bits of finite floats are in the order of their values
  for (int64_t i = 0; i < n; ++i) {
    float value = x[i];
    int32_t bits = int32_t(half::bitsOf(value) & 0x7fffffffu);
    most = std::max(most, bits < 0x7f800000 ? bits : 0);
    put(i, value * inverse);
  }
  if (max)
    *max = std::max(*max, half::fromBits(uint32_t(most)));
}

template <typename F, typename X>
void quantize(F *y, const X *x, const float *scale, float *max, int64_t n) {
  F *__restrict to = y;
  eachQuotient(x, *scale, max, n, [=](int64_t i, float quotient) { to[i] = quotient; });
}

template <typename F, typename X>
static void throughFormat(X *y, const X *x, float scale, float *max, int64_t n) {
  X *__restrict to = y;
  eachQuotient(x, scale, max, n,
               [=](int64_t i, float quotient) { to[i] = float(F(quotient)) * scale; });
}

template <typename X>
void throughFp8(Fp8 format, X *y, const X *x, const float *scale, float *max, int64_t n) {
  if (format == Fp8::E4M3)
    throughFormat<Float8E4M3>(y, x, *scale, max, n);
  else
    throughFormat<Float8E5M2>(y, x, *scale, max, n);
}

#define QUANTIZE(X)                                                                                \
  template void quantize(Float8E4M3 *, const X *, const float *, float *, int64_t);                \
  template void quantize(Float8E5M2 *, const X *, const float *, float *, int64_t);                \
  template void throughFp8(Fp8, X *, const X *, const float *, float *, int64_t);
QUANTIZE(float)
QUANTIZE(BFloat16)

} // namespace partita_rt
