// The conversion that cuda/kernels/fp8.cu requires to compile without nvcc.

#ifndef PARTITA_TEST_WITHOUT_NVCC_CONVERT_H
#define PARTITA_TEST_WITHOUT_NVCC_CONVERT_H

#include "partita_rt/fp8.h"

namespace without_nvcc {

/// As cvt.rn.satfinite.e4m3x2.f32 and cvt.rn.satfinite.e5m2x2.f32, whose NaN is always positive.
template <typename F> unsigned convertPair(float upper, float lower) {
  auto bits = [](float x) { return x != x ? 0x7fu : unsigned(F(x).bits); };
  return bits(upper) << 8 | bits(lower);
}

} // namespace without_nvcc

#endif // PARTITA_TEST_WITHOUT_NVCC_CONVERT_H
