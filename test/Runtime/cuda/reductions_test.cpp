// Reductions, sums over entire arrays, scalars of a step.

#include "simulated.h"

#include <tuple>

namespace partita_rt::cuda {
namespace {

template <typename T> class Reductions : public testing::Test {};
TYPED_TEST_SUITE(Reductions, StorageTypes);

TYPED_TEST(Reductions, OverOneDimension) {
  using T = TypeParam;
  struct Case {
    int64_t outer, n, inner;
  };
  for (Case c : {Case{1, 1, 1},
                 {3, 5, 1},
                 {2, 10000, 1},
                 {1, 130, 77},
                 {2, 165, 300},
                 {3, 4, 2},
                 {2, 0, 3},
                 {0, 3, 2}}) {
    SCOPED_TRACE(testing::Message() << c.outer << " " << c.n << " " << c.inner);
    int64_t ny = c.outer * c.inner;
    Floats x = randomExact<T>(c.outer * c.n * c.inner, "x"), y0 = randomExact<T>(ny, "y"), cpu = y0,
           sum = y0, mean(ny), largest(ny);
    SimulatedStream stream(c.inner == 1 ? 0 : columnSumScratch(c.n, ny));
    for (Write write : {Write::Set, Write::Add}) {
      cpu = sum = y0;
      partita_rt::reduceSum(cpu.data(), x.data(), c.outer, c.n, c.inner, write);
      reduceSum(stream, sum.data(), x.data(), c.outer, c.n, c.inner, write);
      EXPECT_CLOSE(sum, widen(cpu), 1e-5);
      inEveryOrder([&] {
        Tensor<T> in(x, 1), out(y0, 1);
        Tensor<float> wide(y0);
        reduceSum(stream, out.data(), in.in(), c.outer, c.n, c.inner, write);
        EXPECT_BITS(out, sum);
        reduceSum(stream, wide.data(), in.in(), c.outer, c.n, c.inner, write);
        EXPECT_BITS(wide, sum);
      });
    }
    Tensor<T> in(x), out(ny);
    partita_rt::reduceMax(largest.data(), x.data(), c.outer, c.n, c.inner);
    reduceMax(stream, out.data(), in.in(), c.outer, c.n, c.inner);
    EXPECT_BITS(out, largest);
    if (c.n == 0)
      continue;
    partita_rt::reduceMean(cpu.data(), x.data(), c.outer, c.n, c.inner);
    reduceMean(stream, mean.data(), x.data(), c.outer, c.n, c.inner);
    EXPECT_CLOSE(mean, widen(cpu), 1e-5);
    reduceMean(stream, out.data(), in.in(), c.outer, c.n, c.inner);
    EXPECT_BITS(out, mean);
  }
}

TYPED_TEST(Reductions, MaxKeepsNan) {
  using T = TypeParam;
  for (int64_t n : {3, 40})
    for (int64_t inner : {1, 5})
      for (int64_t row : {int64_t(0), n / 2, n - 1}) {
        Floats x = randomExact<T>(n * inner, "x");
        x[size_t(row * inner)] = NAN;
        SimulatedStream stream(0);
        Tensor<T> in(x), out(inner);
        reduceMax(stream, out.data(), in.in(), 1, n, inner);
        Floats largest = out.floats();
        for (int64_t i = 0; i < inner; ++i)
          EXPECT_EQ(std::isnan(largest[size_t(i)]), i == 0) << n << " " << inner << " " << row;
      }
}

TYPED_TEST(Reductions, ColumnSum) {
  using T = TypeParam;
  int64_t rows = 300, width = 37, stride = 45;
  Floats x = randomExact<T>(rows * stride, "x"), y0 = randomExact<T>(width, "y"), cpu = y0, y = y0;
  SimulatedStream stream(columnSumScratch(rows, width));
  partita_rt::columnSum(cpu.data(), x.data(), rows, width, stride, Write::Add);
  columnSum(stream, y.data(), x.data(), rows, width, stride, Write::Add);
  EXPECT_CLOSE(y, widen(cpu), 1e-5);
  Tensor<T> in(x, 1), out(y0);
  columnSum(stream, out.data(), in.in(), rows, width, stride, Write::Add);
  EXPECT_BITS(out, y);
}

/// All blocks of a long sum run at once, and nearly as many as can.
TEST(ColumnBlocks, RunAtOnce) {
  for (int64_t width : {64, 768, 2304, 3072, 5120, 12288}) {
    int64_t blocks = columnBlocks(1 << 20, width) * ceilDiv(width, kColumnPacks * kPack);
    EXPECT_LE(blocks, 8 * kMultiprocessors) << width;
    EXPECT_GE(blocks, 7 * kMultiprocessors) << width;
  }
}

TYPED_TEST(Reductions, OfFullArrays) {
  using T = TypeParam;
  for (int64_t n : {0, 1, 100, 4096, 10007}) {
    SCOPED_TRACE(n);
    Floats x = randomExact<T>(n, "x");
    SimulatedStream stream(squareSumScratch(n));
    double squares = NAN, again = NAN;
    inEveryOrder([&] {
      Tensor<T> in(x, 1);
      squareSum(stream, &squares, {{in.in(), n}});
      EXPECT_NEAR(squares, partita_rt::sumOfSquares(x.data(), n), 1e-13 * double(n + 1));
      squareSum(stream, &again, {{x.data(), n}});
      EXPECT_EQ(again, squares) << "of the same numbers in float";
    });
  }
}

TEST(Scalars, AreTheCpus) {
  Floats a = randomFloats(5000, "a"), b = randomFloats(3, "b");
  SimulatedStream stream(squareSumScratch(5000) + squareSumScratch(3));
  const float *none = nullptr;
  std::vector<Half> h(3);
  std::vector<BFloat16> c(3);
  convert(h.data(), b.data(), 3);
  convert(c.data(), b.data(), 3);
  double cpu[5], gpu[5];
  partita_rt::squareSum(cpu,
                        {{a.data(), 5000}, {h.data(), 3}, {none, 0}, {c.data(), 3}, {b.data(), 3}});
  squareSum(stream, gpu,
            {{a.data(), 5000}, {h.data(), 3}, {none, 0}, {c.data(), 3}, {b.data(), 3}});
  for (int i = 0; i < 5; ++i)
    EXPECT_NEAR(gpu[i], cpu[i], 1e-10) << i;
  squareSum(stream, gpu, {});
  double squares[] = {2.0, 3.0, 0.0};
  float norm, expected;
  partita_rt::rootOfSum(&expected, {{&squares[0], 2}, {&squares[2], 1}});
  rootOfSum(stream, &norm, {{&squares[0], 2}, {&squares[2], 1}});
  EXPECT_EQ(norm, expected);
  std::vector<double> many(700, 0.0);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = 1.0 / double(i + 1);
  std::initializer_list<Squares> lists = {{&many[0], 1}, {&many[1], 0}, {&many[1], 699}};
  partita_rt::rootOfSum(&expected, lists);
  rootOfSum(stream, &norm, lists);
  EXPECT_EQ(norm, expected);
  rootOfSum(stream, &norm, {});
  EXPECT_EQ(norm, 0.0f);
  for (float length : {0.5f, 3.0f, INFINITY, NAN})
    for (double most : {0.0, 1.0}) {
      float scale, wanted, finite, wantedFinite;
      partita_rt::clipScale(&wanted, &length, most);
      clipScale(stream, &scale, &length, most);
      EXPECT_EQ(std::memcmp(&scale, &wanted, 4) == 0 || (scale != scale && wanted != wanted), true);
      partita_rt::allFinite(&wantedFinite, &length);
      allFinite(stream, &finite, &length);
      EXPECT_EQ(finite, wantedFinite);
    }
  for (int i : {0, 1}) {
    partita_rt::trustRatio(&expected, squares + i, 0.01, 10.0);
    trustRatio(stream, &norm, squares + i, 0.01, 10.0);
    EXPECT_EQ(norm, expected);
  }
  float value = 3.0f, scale = 8.0f;
  unscale(stream, &norm, &value, &scale);
  EXPECT_EQ(norm, 0.375f);
}

TEST(Scalars, LabelsAreCounted) {
  SimulatedStream stream;
  for (int64_t n : {0, 1, 31, 1024, 5000}) {
    std::vector<int64_t> labels(size_t(n) + 1, 7); // the last one is not counted
    for (int64_t i = 0; i < n; i += 3)
      labels[size_t(i)] = -100;
    inEveryOrder([&] {
      float count = -1.0f;
      countLabels(stream, &count, labels.data(), n, -100);
      EXPECT_EQ(count, float(partita_rt::countLabels(labels.data(), n, -100)));
    });
  }
}

TEST(Scalars, TheFirstParameterThatIsNotFinite) {
  SimulatedStream stream;
  std::vector<double> few = {1.0, 2.0, 3.0}, many(600, 1.0);
  auto found = [&] {
    int32_t report = 77;
    inEveryOrder([&] {
      firstNonfinite(stream, &report, {{few.data(), 3}, {many.data(), 2}}, {4, 2, 9, 0, 1});
    });
    return report;
  };
  EXPECT_EQ(found(), -1);
  few[2] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(found(), 9);
  few[0] = many[1] = NAN;
  EXPECT_EQ(found(), 1);
  // More parameters than one launch takes.
  std::initializer_list<int> parameters = {
#define TEN(n) n, n, n, n, n, n, n, n, n, n
#define HUNDRED(n) TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n)
      HUNDRED(5), HUNDRED(6), HUNDRED(7), HUNDRED(8), HUNDRED(9), HUNDRED(3)};
  int32_t report = 77;
  many[1] = 1.0;
  many[120] = many[330] = many[599] = NAN;
  firstNonfinite(stream, &report, {{many.data(), 600}}, parameters);
  EXPECT_EQ(report, 3);
  firstNonfinite(stream, &report, {{many.data(), 599}}, parameters);
  EXPECT_EQ(report, 6);
  firstNonfinite(stream, &report, {}, {});
  EXPECT_EQ(report, -1);
}

TEST(Scalars, TheLossScaleIsTheCpus) {
  LossScalerOptions options;
  options.window = 2;
  Rank rank;
  struct State {
    float scale = 65536;
    int64_t steps = 0, lastOverflow = -1, hysteresis = 2, skipped = 0;
  } a, b;
  LossScaleReport report{};
  for (float finite : {1, 1, 1, 0, 0, 0, 1, 1, 1, 1}) {
    partita_rt::updateScale(rank, &a.scale, &a.steps, &a.lastOverflow, &a.hysteresis, &a.skipped,
                            &finite, options);
    updateScale(SimulatedStream(), &report, &b.scale, &b.steps, &b.lastOverflow, &b.hysteresis,
                &b.skipped, &finite, options);
    auto all = [](const State &s) {
      return std::make_tuple(s.scale, s.steps, s.lastOverflow, s.hysteresis, s.skipped);
    };
    EXPECT_EQ(all(a), all(b));
    EXPECT_EQ(report.lossScale, rank.report.lossScale);
    EXPECT_EQ(report.scaleExhausted, rank.report.scaleExhausted);
    EXPECT_EQ(report.skippedSteps, rank.report.skippedSteps);
  }
  EXPECT_EQ(a.skipped, 3);
}

} // namespace
} // namespace partita_rt::cuda
