// Elementwise kernels: casts, dropout, rotation; bit by bit if the CPU's kernel does the same
// arithmetic.

#include "partita_rt/random.h"
#include "simulated.h"

namespace partita_rt::cuda {
namespace {

template <typename T> class ElementsOf : public testing::Test {};
TYPED_TEST_SUITE(ElementsOf, StorageTypes);

TYPED_TEST(ElementsOf, Casts) {
  using T = TypeParam;
  SimulatedStream stream;
  for (int64_t n : {0, 1, 7, 300, 5000})
    for (int64_t offset : {0, 3}) {
      Floats any = randomFloats(n, "any", 1e4), exact = randomExact<T>(n, "x");
      Tensor<float> wide(any, offset), back(n);
      Tensor<T> cast(n, offset), sum(exact);
      convert(stream, cast.data(), wide.in(), n);
      EXPECT_BITS(cast, any);
      convert(stream, back.data(), cast.in(), n);
      EXPECT_BITS(back, cast.floats());
      Floats added = exact;
      partita_rt::accumulate(added.data(), cast.floats().data(), n);
      accumulate(stream, sum.data(), cast.in(), n);
      EXPECT_BITS(sum, added);
      back = Tensor<float>(exact);
      accumulate(stream, back.data(), cast.in(), n);
      EXPECT_BITS(back, added);
      fill(stream, cast.data(), 0.1f, n);
      EXPECT_BITS(cast, Floats(size_t(n), 0.1f));
    }
}

TEST(Elements, StochasticRoundingIsTheCpus) {
  Floats x = randomFloats(1003, "x");
  x[5] = INFINITY;
  x[6] = 3.4e38f;
  Tensor<BFloat16> y(1003, 1);
  Narrow<BFloat16> expected(1003);
  partita_rt::convertStochastically(expected.data(), x.data(), 1003, 42, 300);
  convertStochastically(SimulatedStream(), y.data(), x.data(), 1003, 42, 300);
  EXPECT_BITS(y, widened(expected));
}

TYPED_TEST(ElementsOf, DropoutIsTheCpus) {
  using T = TypeParam;
  struct Case {
    Shape shape, full;
    double ratio;
    int64_t first;
  };
  for (const Case &c : {Case{{4, 6, 8}, {4, 6, 8}, 0.3, 0},
                        {{2, 6, 8}, {4, 6, 8}, 0.5, 96},
                        {{4, 6, 5}, {4, 6, 8}, 0.1, 3},
                        {{4, 3, 5}, {4, 6, 8}, 0.9, 11},
                        {{1000}, {5000}, 1.0 / 3, 17},
                        {{3, 0, 2}, {3, 4, 2}, 0.5, 0}}) {
    SCOPED_TRACE(toString(c.shape));
    Floats x = randomExact<T>(c.shape.elements(), "x"), y(x.size());
    partita_rt::dropout(y.data(), x.data(), c.shape, c.full, {c.ratio, 3, 42}, c.first);
    Tensor<T> in(x, 1), out(int64_t(x.size()));
    dropout(SimulatedStream(), out.data(), in.in(), c.shape, c.full, {c.ratio, 3, 42}, c.first);
    EXPECT_BITS(out, y);
    dropout(SimulatedStream(), in.data(), in.in(), c.shape, c.full, {c.ratio, 3, 42}, c.first);
    EXPECT_BITS(in, y);
  }
}

TYPED_TEST(ElementsOf, RotateHalf) {
  using T = TypeParam;
  for (int64_t width : {2, 6, 16, 64, 130})
    for (Pairs pairs : {Pairs::Halves, Pairs::Interleaved}) {
      Floats x = randomExact<T>(5 * width, "x"), y(x.size());
      partita_rt::rotateHalf(y.data(), x.data(), 5, width, pairs);
      Tensor<T> in(x, width % 3), out(5 * width, width % 3);
      rotateHalf(SimulatedStream(), out.data(), in.in(), 5, width, pairs);
      EXPECT_BITS(out, y);
    }
  T *none = nullptr;
  EXPECT_EQ(errorOf([&] { rotateHalf<T>(SimulatedStream(), none, none, 1, 3, Pairs::Halves); }),
            "rotateHalf: rows of 3 elements are not pairs");
}

/// Rotates heads inside a packed tensor, with d-wide rows of angles by position; in the result,
/// heads are the outer dimension.
template <typename T>
Floats rotaryOnGpu(const Floats &x, const Floats &angles, int64_t d, Pairs pairs, Turn turn) {
  constexpr int64_t b = 2, s = 3, h = 5;
  Shape packed{2 * s * h * d, 2 * h * d, d, 1}, across{s * h * d, d, s * d, 1},
      repeated{0, d, 0, 1};
  Tensor<T> in(x, d % 3), out(b * s * h * d, d % 3);
  Tensor<float> at(angles, d % 2);
  rotary(SimulatedStream(), out.data(), across, in.in() + h * d, packed, at.in(), repeated,
         at.in() + s * d, repeated, {b, s, h, d}, pairs, turn);
  if constexpr (std::is_same_v<T, float>) {
    Floats y(b * s * h * d);
    partita_rt::rotary(y.data(), across, x.data() + h * d, packed, angles.data(), repeated,
                       angles.data() + s * d, repeated, {b, s, h, d}, pairs, turn);
    EXPECT_LE(relativeError(out.floats(), widen(y)), 1e-6);
    EXPECT_TRUE(out.marginsKept());
  } else {
    EXPECT_BITS(out, rotaryOnGpu<float>(x, angles, d, pairs, turn));
  }
  return out.floats();
}

TYPED_TEST(ElementsOf, Rotary) {
  using T = TypeParam;
  for (int64_t d : {2, 6, 16, 64, 130})
    for (Pairs pairs : {Pairs::Halves, Pairs::Interleaved})
      for (Turn turn : {Turn::Forth, Turn::Back})
        rotaryOnGpu<T>(randomExact<T>(2 * 3 * 2 * 5 * d, "x"), randomFloats(2 * 3 * d, "angles"), d,
                       pairs, turn);
}

TYPED_TEST(ElementsOf, DrawNormal) {
  using T = TypeParam;
  for (int64_t n : {1, 8, 777}) {
    Floats expected(n);
    for (int64_t i = 0; i < n; ++i)
      expected[i] = float(standardNormal(99, uint64_t(1000 + i)) * 0.02);
    Tensor<T> out(n, 1);
    drawNormal(SimulatedStream(), out.data(), n, 99, 1000, 0.0, 0.02);
    EXPECT_BITS(out, expected);
  }
}

} // namespace
} // namespace partita_rt::cuda
