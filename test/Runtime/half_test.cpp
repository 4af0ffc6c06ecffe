// 16-bit numbers against a model in double that knows only each format's numbers of bits.

#include "reference.h"

#include "cpu/kernels/vector.h"

namespace partita_rt {
namespace {

struct Format {
  int exponentBits, mantissaBits;
  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  double largest() const {
    return std::ldexp(2.0 - std::ldexp(1.0, -mantissaBits), (1 << exponentBits) - 2 - bias());
  }
};
constexpr Format kHalf{5, 10}, kBFloat16{8, 7};

/// Returns the value of a bit pattern.
double valueOf(uint16_t bits, Format f) {
  int exponent = (bits >> f.mantissaBits) & ((1 << f.exponentBits) - 1);
  int mantissa = bits & ((1 << f.mantissaBits) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << f.exponentBits) - 1)
    return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - f.bias() - f.mantissaBits);
  return sign * std::ldexp((1 << f.mantissaBits) + mantissa, exponent - f.bias() - f.mantissaBits);
}

/// Rounds x to the nearest value, ties to even.
double rounded(double x, Format f) {
  if (std::isnan(x) || std::isinf(x) || x == 0)
    return x;
  int exponent = std::max(std::ilogb(x), 1 - f.bias());
  double ulp = std::ldexp(1.0, exponent - f.mantissaBits);
  double y = std::nearbyint(x / ulp) * ulp; // the default rounding: ties to even
  return std::fabs(y) > f.largest() ? std::copysign(INFINITY, x) : y;
}

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

float floatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

template <typename T> T pattern(uint32_t bits) {
  T x;
  x.bits = uint16_t(bits);
  return x;
}

/// Returns the floats around every value and around every midpoint of two, and many others.
template <typename T> Floats boundaries() {
  Floats all;
  auto add = [&](float x) {
    for (float y : {x, std::nextafterf(x, INFINITY), std::nextafterf(x, -INFINITY)})
      all.push_back(y);
  };
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float x = pattern<T>(bits), next = pattern<T>(bits + 1 < 65536 ? bits + 1 : bits);
    add(x);
    add(float((double(x) + next) / 2)); // exact: a float has more bits
  }
  for (float x : {65504.0f, 65519.996f, 65520.0f, 65536.0f, 1e30f, 3.3961775e38f, 3.4028235e38f})
    for (float y : {x, -x})
      add(y);
  for (uint32_t i = 0; i < (1u << 20); ++i)
    all.push_back(floatOf(i * 4099u + (i >> 7)));
  return all;
}

template <typename T> void checkAll(Format format) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float x = pattern<T>(bits);
    ASSERT_TRUE(same(x, valueOf(uint16_t(bits), format))) << std::hex << bits << ": " << x;
    uint16_t back = T(x).bits;
    if (!std::isnan(x))
      ASSERT_EQ(back, bits);
    else
      ASSERT_TRUE(std::isnan(float(T(x)))) << std::hex << bits;
  }
  for (float x : boundaries<T>()) {
    T assigned;
    assigned = x;
    ASSERT_EQ(assigned.bits, T(x).bits);
    ASSERT_TRUE(same(T(x), rounded(x, format)))
        << x << " became " << float(T(x)) << ", expected " << rounded(x, format);
  }
  for (uint32_t payload = 1; payload < (1u << 23); payload = payload * 2 + 1)
    for (uint32_t sign : {0u, 0x80000000u})
      ASSERT_TRUE(std::isnan(float(T(floatOf(sign | 0x7f800000u | payload))))) << payload;
}

TEST(Half, EveryPatternAndEveryBoundary) { checkAll<Half>(kHalf); }
TEST(BFloat16, EveryPatternAndEveryBoundary) { checkAll<BFloat16>(kBFloat16); }

/// The kernels' vectors (F16C if the processor has it) have the same bits, also for NaN.
template <typename T> void checkLanes() {
  T narrow[kLanes];
  float wide[kLanes];
  for (uint32_t bits = 0; bits < 65536; bits += uint32_t(kLanes)) {
    for (uint32_t i = 0; i < kLanes; ++i)
      narrow[i] = pattern<T>(bits + i);
    store(wide, load(narrow));
    for (uint32_t i = 0; i < kLanes; ++i) {
      float expected = narrow[i];
      ASSERT_EQ(std::memcmp(&wide[i], &expected, 4), 0) << std::hex << bits + i;
    }
  }
  Floats x = boundaries<T>();
  for (uint32_t payload = 1; payload < (1u << 23); payload = payload * 2 + 1)
    x.push_back(floatOf(0xff800000u | payload));
  x.resize((x.size() + 15) / 16 * 16);
  for (size_t at = 0; at < x.size(); at += size_t(kLanes)) {
    store(narrow, load(x.data() + at));
    for (size_t i = 0; i < size_t(kLanes); ++i)
      ASSERT_EQ(narrow[i].bits, T(x[at + i]).bits) << x[at + i];
  }
}

TEST(Half, VectorsHaveTheSameBits) { checkLanes<Half>(); }
TEST(BFloat16, VectorsHaveTheSameBits) { checkLanes<BFloat16>(); }

TEST(BFloat16, StochasticRoundingIsUnbiased) {
  for (float x : {0.0f, -0.0f, 1.0f, 1.0001f, -1.00390625f, -3.14159f, 1e-40f, -1e-45f, 3.3e38f,
                  65504.123f, 1e30f, floatOf(0x7f7f8001u)}) {
    BFloat16 below = pattern<BFloat16>(half::bitsOf(x) >> 16);
    double low = below, high = float(pattern<BFloat16>(below.bits + 1u)), sum = 0;
    if (std::isinf(high))
      high = std::ldexp(1.0, 128);
    for (uint32_t random = 0; random < 65536; ++random) {
      double y = roundStochastically(x, uint16_t(random));
      y = std::isinf(y) ? high : y;
      ASSERT_TRUE(y == low || y == high) << x << ": " << y;
      sum += (y - low) / (high - low); // 0 or 1: exact
    }
    EXPECT_EQ(low + (high - low) * (sum / 65536), double(x)) << x;
  }
  for (uint32_t random : {0u, 1u, 32768u, 65535u}) {
    EXPECT_EQ(float(roundStochastically(INFINITY, uint16_t(random))), INFINITY);
    EXPECT_EQ(float(roundStochastically(-INFINITY, uint16_t(random))), -INFINITY);
    for (uint32_t bits : {0x7f800001u, 0xff80ffffu, 0x7fffffffu, 0xffc00000u})
      EXPECT_TRUE(std::isnan(float(roundStochastically(floatOf(bits), uint16_t(random)))));
  }
}

/// A loop like emitted ones, with T for float.
template <typename T> void emittedLoop(T *out, const T *a, const T *b, int64_t ni) {
#pragma GCC ivdep
  for (int64_t i = 0; i < ni; ++i) {
    const float t0 = a[i] - (-0.5f);
    const float t1 = 0.5f * t0 * (1.0f + tanhf(0.7978846f * t0 * (1.0f + 0.044715f * t0 * t0)));
    out[i] = select(a[i] > b[i], maximum(t1, a[i]), -b[i]) * sigmoid(b[i]);
  }
}

template <typename T> void checkLoop() {
  std::vector<T> a(103), b(103), out(103);
  Floats x = randomFloats(103, "a"), y = randomFloats(103, "b"), wide(103);
  for (size_t i = 0; i < x.size(); ++i) {
    a[i] = x[i];
    b[i] = y[i];
    x[i] = a[i];
    y[i] = b[i];
  }
  emittedLoop(out.data(), a.data(), b.data(), 103);
  emittedLoop(wide.data(), x.data(), y.data(), 103);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(out[i].bits, T(wide[i]).bits);
}

TEST(Half, EmittedLoopsRoundOnce) { checkLoop<Half>(); }
TEST(BFloat16, EmittedLoopsRoundOnce) { checkLoop<BFloat16>(); }

} // namespace
} // namespace partita_rt
