// Copies, reductions, updates and the vectorized exponential.

#include "reference.h"

#include "cpu/kernels/vector.h"

namespace partita_rt {
namespace {

TEST(StridedCopy, EqualsNestedLoops) {
  struct Case {
    Shape shape, dst, src;
  };
  std::vector<Case> cases = {
      {{}, {}, {}},
      {{7}, {1}, {1}},
      {{7}, {2}, {3}},
      {{5, 7}, {7, 1}, {1, 5}},                              // transpose
      {{40, 50}, {50, 1}, {1, 40}},                          // transpose in blocks
      {{2, 3, 4, 5}, {60, 20, 5, 1}, {60, 5, 15, 1}},        // [b, h, s, d] from [b, s, h, d]
      {{2, 17, 3, 18}, {918, 54, 18, 1}, {918, 1, 306, 17}}, // both ends move
      {{3, 4, 5}, {20, 5, 1}, {0, 5, 1}},                    // broadcast
      {{3, 1, 5}, {5, 5, 1}, {100, 50, 2}},                  // slice with steps
      {{4, 0, 5}, {1, 1, 1}, {1, 1, 1}},                     // empty
  };
  for (int64_t bytes : {1, 2, 4, 8})
    for (const Case &c : cases) {
      std::vector<unsigned char> src(8 * 4096), dst(8 * 4096, 0xEE), expected = dst;
      for (size_t i = 0; i < src.size(); ++i)
        src[i] = static_cast<unsigned char>(mix64(i));
      for (int64_t flat = 0; flat < c.shape.elements(); ++flat) {
        int64_t rest = flat, from = 0, to = 0;
        for (int d = c.shape.rank - 1; d >= 0; --d) {
          from += rest % c.shape[d] * c.src[d];
          to += rest % c.shape[d] * c.dst[d];
          rest /= c.shape[d];
        }
        std::memcpy(expected.data() + to * bytes, src.data() + from * bytes, size_t(bytes));
      }
      stridedCopy(dst.data(), c.dst, src.data(), c.src, c.shape, bytes);
      EXPECT_EQ(dst, expected) << toString(c.shape) << " of " << bytes << " bytes";
    }
}

TEST(Reduce, MaxKeepsNan) {
  for (int64_t n : {3, 40})
    for (int64_t inner : {1, 5})
      for (int64_t row = 0; row < n; ++row) {
        Floats x = randomFloats(n * inner, "x"), y(size_t(inner), 5.0f);
        x[size_t(row * inner)] = NAN;
        reduceMax(y.data(), x.data(), 1, n, inner);
        EXPECT_TRUE(std::isnan(y[0])) << n << " " << inner << " " << row;
        for (int64_t i = 1; i < inner; ++i)
          EXPECT_FALSE(std::isnan(y[size_t(i)]));
      }
}

TEST(Reduce, EqualsPlainSums) {
  struct Case {
    int64_t outer, n, inner;
  };
  for (Case c : {Case{1, 1, 1}, {3, 5, 1}, {1, 10000, 1}, {1, 130, 77}, {4, 9, 64}, {2, 65, 130}}) {
    Floats x = randomFloats(c.outer * c.n * c.inner, "x"), y(c.outer * c.inner, 5.0f);
    Doubles sum(y.size()), largest(y.size(), -1e300), mean(y.size());
    for (int64_t o = 0; o < c.outer; ++o)
      for (int64_t r = 0; r < c.n; ++r)
        for (int64_t i = 0; i < c.inner; ++i) {
          double value = x[(o * c.n + r) * c.inner + i];
          sum[o * c.inner + i] += value;
          largest[o * c.inner + i] = std::max(largest[o * c.inner + i], value);
        }
    for (size_t i = 0; i < sum.size(); ++i)
      mean[i] = sum[i] / double(c.n);
    reduceMax(y.data(), x.data(), c.outer, c.n, c.inner);
    EXPECT_EQ(widen(y), largest);
    reduceMean(y.data(), x.data(), c.outer, c.n, c.inner);
    EXPECT_CLOSE(y, mean, 1e-5);
    reduceSum(y.data(), x.data(), c.outer, c.n, c.inner);
    EXPECT_CLOSE(y, sum, 1e-5);
    Floats once = y;
    reduceSum(y.data(), x.data(), c.outer, c.n, c.inner, Write::Add);
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], 2 * once[i], 1e-5 * (1 + std::fabs(once[i])));
  }
  Floats wide = randomFloats(10 * 30, "wide"), columns(20), expected(20);
  columnSum(columns.data(), wide.data() + 5, 10, 20, 30);
  for (int64_t j = 0; j < 20; ++j)
    for (int64_t i = 0; i < 10; ++i)
      expected[j] += wide[i * 30 + 5 + j];
  EXPECT_CLOSE(columns, widen(expected), 1e-6);
}

TEST(Reduce, SumOfSquaresIsPreciseAndIndependentOfSplitsAtBlocks) {
  Floats x = randomFloats(4096 * 3 + 5, "x", 100.0);
  double sum = 0;
  for (float value : x)
    sum += double(value) * value;
  EXPECT_NEAR(sumOfSquares(x.data(), int64_t(x.size())) / sum, 1.0, 1e-12);
  double parts = 0;
  for (int64_t begin = 0; begin < int64_t(x.size()); begin += 4096)
    parts += sumOfSquares(x.data() + begin, std::min<int64_t>(4096, int64_t(x.size()) - begin));
  EXPECT_EQ(parts, sumOfSquares(x.data(), int64_t(x.size())));
}

TEST(Norms, AreOfAllArraysAndClip) {
  Floats a = {3.0f, 0.0f}, b = {4.0f};
  double squares[2];
  float norm, scale;
  squareSum(squares, {{a.data(), 2}, {b.data(), 1}});
  EXPECT_EQ(squares[0], 9.0);
  EXPECT_EQ(squares[1], 16.0);
  rootOfSum(&norm, {{squares, 2}, {squares, 2}});
  EXPECT_FLOAT_EQ(norm, std::sqrt(50.0f));
  for (auto [length, most, expected] : {std::tuple(5.0f, 0.0, 1.0f), {0.5f, 1.0, 1.0f}}) {
    clipScale(&scale, &length, most);
    EXPECT_EQ(scale, expected);
  }
  norm = 4.0f;
  clipScale(&scale, &norm, 1.0);
  EXPECT_NEAR(scale, 0.25, 1e-6);
  for (float none : {INFINITY, NAN}) {
    clipScale(&scale, &none, 1.0);
    EXPECT_TRUE(std::isnan(scale));
    clipScale(&scale, &none, 0.0); // even without a max norm
    EXPECT_TRUE(std::isnan(scale));
  }
  Floats large = {1e25f, 1e25f}; // their squares overflow float
  squareSum(squares, {{large.data(), 2}});
  rootOfSum(&norm, {{squares, 1}});
  EXPECT_FLOAT_EQ(norm, 1.4142135e25f);
}

TEST(Norms, NameTheFirstThatIsNotFinite) {
  Floats finite = {1e38f}, infinite = {1.0f, INFINITY}, none = {NAN};
  double squares[3], others[2];
  squareSum(squares, {{finite.data(), 1}, {none.data(), 1}, {infinite.data(), 2}});
  squareSum(others, {{infinite.data(), 2}, {finite.data(), 1}});
  Rank rank;
  firstNonfinite(rank, {{squares, 3}, {others, 2}}, {0, 7, 5, 3, 1}); // any order
  EXPECT_EQ(rank.report.firstNonfinite, 3);
  firstNonfinite(rank, {{squares, 3}}, {0, 7, 5});
  EXPECT_EQ(rank.report.firstNonfinite, 5);
  firstNonfinite(rank, {{squares, 1}}, {0});
  EXPECT_EQ(rank.report.firstNonfinite, -1);
}

TEST(Vector, ExponentialIsAccurateAndKeepsSpecialValues) {
  double worst = 0;
  for (float x = -87.0f; x < 88.36f; x += 0.0137f) {
    float y = expLanes(splat(x))[3];
    worst = std::max(worst, std::fabs(y / std::exp(double(x)) - 1));
  }
  EXPECT_LT(worst, 2.4e-7);
  EXPECT_EQ(expLanes(splat(0.0f))[0], 1.0f);
  EXPECT_EQ(expLanes(splat(-INFINITY))[0], 0.0f);
  EXPECT_EQ(expLanes(splat(-200.0f))[0], 0.0f);
  EXPECT_EQ(expLanes(splat(INFINITY))[0], INFINITY);
  EXPECT_EQ(expLanes(splat(200.0f))[0], INFINITY);
  EXPECT_TRUE(std::isnan(expLanes(splat(NAN))[0]));
}

TEST(Math, GeluSlopeIsTheDerivative) {
  for (double x = -4; x < 4; x += 0.37) {
    auto gelu = [](double v) {
      return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    };
    double slope = (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
    float t = tanhf(0.7978845608f * float(x + 0.044715 * x * x * x));
    EXPECT_NEAR(gelu_tanh_slope(float(x), t), slope, 2e-6);
  }
  EXPECT_EQ(select(true, 1.0f, 2.0f), 1.0f);
  EXPECT_TRUE(std::isnan(maximum(NAN, 1.0f)));
  EXPECT_TRUE(std::isnan(minimum(1.0f, NAN)));
  EXPECT_EQ(maximum(-INFINITY, 1.0f), 1.0f);
  EXPECT_EQ(sigmoid(-INFINITY), 0.0f);
}

/// A GPU's functions are instructions with these errors, which nothing here has.
TEST(Math, TanhOfGpusIsWithinItsError) {
  auto off = [](double exact, int ulps) { return float(exact * (1.0 + ulps * 0x1p-23)); };
  for (int power : {-2, 0, 2})
    for (int over : {-1, 0, 1}) {
      auto of = [&](float x) {
        return tanhBy(
            x, [&](float y) { return off(std::exp2(double(y)), power); },
            [&](float y) { return off(1.0 / double(y), over); });
      };
      for (float x = -20.0f; x < 20.0f; x += 0.0137f)
        ASSERT_NEAR(of(x), std::tanh(double(x)), 0x1p-20) << x;
      EXPECT_NEAR(of(-INFINITY), -1.0f, 0x1p-20);
      EXPECT_NEAR(of(INFINITY), 1.0f, 0x1p-20);
      EXPECT_TRUE(std::isnan(of(NAN)));
    }
}

/// One within a unit in the last place, which flushes what is below the normal floats to 0.
TEST(Math, QuotientsOfGpusAreWithinTheirError) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponents(-20.0f, 126.0f), mantissas(1.0f, 2.0f);
  auto ulp = [](double x) { return std::ldexp(1.0, std::ilogb(x) - 23); };
  double most = 0;
  for (int step = 0; step < 200000; ++step) {
    float a = mantissas(random) * (step % 2 ? 1.0f : -1.0f), e = std::exp2(exponents(random));
    double exact = 1.0 / double(1.0f + e);
    for (float toward : {-INFINITY, 0.0f, INFINITY}) {
      auto over = [&](float x) {
        float y = float(1.0 / double(x));
        float off = toward == 0.0f ? y : std::nextafterf(y, toward);
        return std::fabs(double(off) - exact) <= ulp(exact) ? off : y;
      };
      float wanted = a / (1.0f + e);
      most = std::max(most, std::fabs(double(overOnePlusBy(a, e, over)) - double(wanted)) /
                                ulp(double(wanted)));
    }
  }
  EXPECT_LE(most, 2.0);
  EXPECT_GT(most, 1.0);
  auto flushed = [](float x) { return 1.0f / x < 0x1p-126f ? 0.0f : 1.0f / x; };
  EXPECT_EQ(overOnePlusBy(3.0f, 0x1p127f, flushed), 0.0f);
  EXPECT_EQ(overOnePlusBy(3.0f, INFINITY, flushed), 0.0f);
  EXPECT_EQ(overOnePlusBy(3.0f, 0.0f, flushed), 3.0f);
  EXPECT_TRUE(std::isnan(overOnePlusBy(3.0f, NAN, flushed)));
}

TEST(Math, CpusDivide) {
  for (float x : {-90.0f, -3.3f, 0.0f, 0.7f, 88.0f}) {
    EXPECT_EQ(over_one_plus(x, expf(-x)), x / (1.0f + expf(-x)));
    EXPECT_EQ(near_tanh(x), tanhf(x));
  }
}

TEST(Math, VectorizedLibmKeepsSpecialValues) {
  Floats x(64, -INFINITY), e(64), t(64), r(64), l(64);
  x[1] = INFINITY;
  x[2] = NAN;
  x[3] = 0.0f;
  x[4] = 1.0f;
  const float *__restrict in = x.data();
  for (int i = 0; i < 64; ++i) {
    e[i] = expf(in[i]);
    t[i] = tanhf(in[i]);
    r[i] = erff(in[i]);
    l[i] = logf(in[i]);
  }
  EXPECT_EQ(e[0], 0.0f);
  EXPECT_EQ(e[1], INFINITY);
  EXPECT_TRUE(std::isnan(e[2]) && std::isnan(t[2]) && std::isnan(r[2]));
  EXPECT_EQ(t[0], -1.0f);
  EXPECT_EQ(r[1], 1.0f);
  EXPECT_EQ(l[3], -INFINITY);
  EXPECT_TRUE(std::isnan(l[0]));
  EXPECT_NEAR(e[4], std::exp(1.0), 1e-6);
}

} // namespace
} // namespace partita_rt
