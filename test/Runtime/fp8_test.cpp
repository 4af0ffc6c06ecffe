// Numbers of 8 bits: every code, every tie, saturation; quantization and matmuls of them.

#include "partita_rt/kernels.h"
#include "partita_rt/math.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace partita_rt;

namespace {

/// A number by the format's definition: exponent and mantissa bits, bias.
double valueOf(int bits, int mantissaBits, int bias) {
  int mantissa = bits & ((1 << mantissaBits) - 1), exponent = (bits & 0x7f) >> mantissaBits;
  double value = exponent == 0
                     ? std::ldexp(mantissa, 1 - bias - mantissaBits)
                     : std::ldexp((1 << mantissaBits) + mantissa, exponent - bias - mantissaBits);
  return bits & 0x80 ? -value : value;
}

template <typename F> struct Format;
template <> struct Format<Float8E4M3> {
  static constexpr int mantissa = 3, bias = 7, most = 0x7e;
};
template <> struct Format<Float8E5M2> {
  static constexpr int mantissa = 2, bias = 15, most = 0x7b;
};

template <typename F> F withBits(int bits) {
  F number;
  number.bits = uint8_t(bits);
  return number;
}

template <typename F> void checkCodes() {
  using T = Format<F>;
  for (int sign : {0, 0x80})
    for (int code = 0; code <= T::most; ++code) {
      double value = valueOf(sign | code, T::mantissa, T::bias);
      EXPECT_EQ(float(withBits<F>(sign | code)), value) << code;
      EXPECT_EQ(int(F(float(value)).bits), sign | code);
      if (code == T::most)
        continue;
      // Half way to the next one, exact in float, goes to the even one; a little off, to the nearer.
      double next = valueOf(sign | (code + 1), T::mantissa, T::bias);
      float tie = float((value + next) / 2);
      int even = code % 2 == 0 ? code : code + 1;
      EXPECT_EQ(int(F(tie).bits), sign | even) << code;
      float away = sign ? -INFINITY : INFINITY;
      EXPECT_EQ(int(F(std::nextafterf(tie, 0)).bits), sign | code) << code;
      EXPECT_EQ(int(F(std::nextafterf(tie, away)).bits), sign | (code + 1)) << code;
    }
  float most = float(withBits<F>(T::most));
  for (float beyond : {most * 1.01f, most * 4, std::numeric_limits<float>::max(), INFINITY}) {
    EXPECT_EQ(int(F(beyond).bits), T::most);
    EXPECT_EQ(int(F(-beyond).bits), 0x80 | T::most);
  }
  EXPECT_TRUE(std::isnan(float(F(NAN))));
  EXPECT_EQ(float(F(std::numeric_limits<float>::denorm_min())), 0);
}

TEST(Fp8, EveryCode) {
  checkCodes<Float8E4M3>();
  checkCodes<Float8E5M2>();
  EXPECT_EQ(float(withBits<Float8E4M3>(0x7e)), 448);
  EXPECT_EQ(float(withBits<Float8E5M2>(0x7b)), 57344);
  EXPECT_TRUE(std::isnan(float(withBits<Float8E4M3>(0x7f))));
  EXPECT_TRUE(std::isnan(float(withBits<Float8E4M3>(0xff))));
  EXPECT_TRUE(std::isinf(float(withBits<Float8E5M2>(0x7c)))); // never stored
}

TEST(Fp8, Scales) {
  constexpr float unit = 0x1p-8f, initial = 3;
  EXPECT_EQ(fp8_scale(0, unit, initial), initial);
  EXPECT_EQ(fp8_scale(448, unit, initial), 1);
  EXPECT_EQ(fp8_scale(std::nextafterf(448, 500), unit, initial), 2);
  EXPECT_EQ(fp8_scale(224, unit, initial), 0.5);
  EXPECT_EQ(fp8_scale(225, unit, initial), 1);
  EXPECT_EQ(fp8_scale(std::numeric_limits<float>::denorm_min(), unit, initial), 0x1p-58f);
  EXPECT_EQ(fp8_scale(std::numeric_limits<float>::max(), unit, initial), 0x1p52f);
}

std::vector<float> numbers(int64_t n, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(n));
  for (float &value : values)
    value = normal(random);
  return values;
}

TEST(Fp8, Quantizes) {
  std::vector<float> x = numbers(1003, 4, 1);
  x[5] = INFINITY, x[6] = NAN, x[7] = -1000;
  float scale = 0.125f, max = 2, none = 2000;
  std::vector<Float8E4M3> y(x.size());
  std::vector<float> back(x.size());
  quantize(y.data(), x.data(), &scale, &max, int64_t(x.size()));
  EXPECT_EQ(max, 1000); // the finite ones
  quantize(y.data(), x.data(), &scale, &none, int64_t(x.size()));
  EXPECT_EQ(none, 2000); // not lowered
  throughFp8(Fp8::E4M3, back.data(), x.data(), &scale, nullptr, int64_t(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i].bits, Float8E4M3(x[i] / scale).bits) << i;
    if (i != 6) {
      EXPECT_EQ(back[i], float(y[i]) * scale) << i;
    }
  }
  EXPECT_EQ(back[5], 448 * scale);
  EXPECT_EQ(back[7], -448 * scale);
}

/// The bits of gemm of the numbers that the stored ones stand for, in bfloat16.
template <typename A, typename B> void checkGemm(Trans transA, Trans transB) {
  const int64_t m = 48, n = 80, k = 1000;
  float scaleA = 0x1p-3f, scaleB = 0x1p-11f;
  std::vector<float> a = numbers(m * k, 1, 2), b = numbers(n * k, 0.01f, 3);
  std::vector<A> storedA(a.size());
  std::vector<B> storedB(b.size());
  quantize(storedA.data(), a.data(), &scaleA, nullptr, m * k);
  quantize(storedB.data(), b.data(), &scaleB, nullptr, n * k);
  std::vector<BFloat16> wideA(a.size()), wideB(b.size()), c(size_t(m * n)), expected(size_t(m * n));
  for (size_t i = 0; i < a.size(); ++i) {
    wideA[i] = float(storedA[i]) * scaleA;
    ASSERT_EQ(float(wideA[i]), float(storedA[i]) * scaleA); // exact
  }
  for (size_t i = 0; i < b.size(); ++i)
    wideB[i] = float(storedB[i]) * scaleB;
  int64_t lda = transA == Trans::Yes ? m : k, ldb = transB == Trans::Yes ? k : n;
  scaledGemm(transA, transB, m, n, k, storedA.data(), &scaleA, storedB.data(), &scaleB, c.data());
  gemm(transA, transB, m, n, k, 1.0f, wideA.data(), lda, wideB.data(), ldb, 0.0f, expected.data(),
       n);
  for (size_t i = 0; i < c.size(); ++i)
    ASSERT_EQ(c[i].bits, expected[i].bits) << i;
  std::vector<BFloat16> more(size_t(m * n)), sum(c.size());
  for (size_t i = 0; i < more.size(); ++i)
    more[i] = BFloat16(float(i % 13) - 6);
  scaledGemm(transA, transB, m, n, k, storedA.data(), &scaleA, storedB.data(), &scaleB, c.data(),
             more.data());
  gemmBias(transA, transB, m, n, k, wideA.data(), lda, wideB.data(), ldb, more.data(),
           expected.data(), n);
  for (size_t i = 0; i < c.size(); ++i)
    ASSERT_EQ(c[i].bits, expected[i].bits) << i << ", a bias";
  scaledGemm(transA, transB, m, n, k, storedA.data(), &scaleA, storedB.data(), &scaleB, sum.data(),
             nullptr, more.data());
  gemm(transA, transB, m, n, k, 1.0f, wideA.data(), lda, wideB.data(), ldb, 1.0f, more.data(), n);
  for (size_t i = 0; i < c.size(); ++i)
    ASSERT_EQ(sum[i].bits, more[i].bits) << i << ", an addend";
}

TEST(Fp8, Multiplies) {
  checkGemm<Float8E4M3, Float8E4M3>(Trans::No, Trans::No);
  checkGemm<Float8E5M2, Float8E4M3>(Trans::No, Trans::Yes);
  checkGemm<Float8E4M3, Float8E5M2>(Trans::Yes, Trans::No);
}

} // namespace
