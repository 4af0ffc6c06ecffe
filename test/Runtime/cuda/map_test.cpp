// The launchers of emitted kernels: elements of any type and layout, updates with scalars in
// memory, sums of squares. The structs are as the compiler prints them.

#include "simulated.h"

#include "partita_rt/math.h"
#include "partita_rt/partita_rt_cuda.h"

namespace partita_rt::cuda {
namespace {

struct map_add_mul_element {
  __host__ __device__ void operator()(float &out0, float &out1, float a, float b, float c) const {
    const float t0 = a + b;
    const float t1 = t0 * c;
    out0 = t0;
    out1 = t1;
  }
};

template <typename T> class MapOf : public testing::Test {};
TYPED_TEST_SUITE(MapOf, StorageTypes);

/// Rows with different strides, one operand that repeats along them, and one that is the same row
/// each time.
TYPED_TEST(MapOf, Rows) {
  using T = TypeParam;
  for (int64_t ni : {1, 3})
    for (int64_t nj : {1, 7, 8, 30}) {
      int64_t stride = nj + 5;
      Floats a = randomExact<T>(ni * stride, "a"), b = randomExact<T>(ni, "b"),
             c = randomFloats(nj, "c");
      Tensor<T> x(a, 1), y(b), sums(ni * nj, 3);
      Tensor<float> z(c), products(ni * nj);
      inEveryOrder([&] {
        SimulatedStream stream;
        mapElements(stream, {ni, nj}, map_add_mul_element(), each(sums.data(), {nj}),
                    each(products.data(), {nj}), each(x.in(), {stride}), same(y.in(), {int64_t(1)}),
                    each(z.in(), {int64_t(0)}));
        Floats expected(size_t(ni * nj)), expectedProducts(size_t(ni * nj));
        for (int64_t i = 0; i < ni; ++i)
          for (int64_t j = 0; j < nj; ++j)
            map_add_mul_element()(expected[size_t(i * nj + j)],
                                  expectedProducts[size_t(i * nj + j)], a[size_t(i * stride + j)],
                                  b[size_t(i)], c[size_t(j)]);
        EXPECT_BITS(sums, expected);
        EXPECT_BITS(products, expectedProducts);
      });
    }
}

struct Negate {
  __device__ void operator()(float &out, float x) const { out = -x; }
};

TEST(Map, FourLoops) {
  const int64_t n[] = {2, 3, 2, 5};
  Floats a = randomFloats(200, "a"), expected(60);
  Tensor<float> x(a), y(60);
  mapElements(SimulatedStream(), {n[0], n[1], n[2], n[3]}, Negate(), each(y.data(), {30, 10, 5}),
              each(x.in(), {7, 20, 60}));
  for (int64_t i = 0; i < 60; ++i)
    expected[size_t(i)] = -a[size_t(i / 30 * 7 + i / 10 % 3 * 20 + i / 5 % 2 * 60 + i % 5)];
  EXPECT_BITS(y, expected);
}

struct Select {
  __device__ void operator()(int64_t &out, bool &big, bool c, int64_t a, int32_t b) const {
    out = select(c, a, int64_t(b));
    big = a > int64_t(b);
  }
};

/// Integers and booleans pass through registers unchanged: 2^53 + 1 is not a double.
TEST(Map, OtherTypes) {
  constexpr int64_t n = 37;
  Tensor<int64_t> a(n, 1), out(n);
  Tensor<int32_t> b(n, 3);
  bool c[n], big[n];
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < n; ++i) {
    a.data()[i] = (int64_t(1) << 53) + 1 + i;
    b.data()[i] = int32_t(-i);
    c[i] = i % 3 == 0;
    expected.push_back(i % 3 == 0 ? a.in()[i] : b.in()[i]);
  }
  mapElements(SimulatedStream(), {n}, Select(), each(out.data()), each(big),
              each(static_cast<const bool *>(c)), each(a.in()), each(b.in()));
  EXPECT_EQ(out.values(), expected);
  EXPECT_TRUE(out.marginsKept());
  for (int64_t i = 0; i < n; ++i)
    EXPECT_TRUE(big[i]);
}

struct Double {
  __device__ void operator()(float &out, float x) const { out = 2 * x; }
};

/// An output may have the same memory as an operand.
TEST(Map, InPlace) {
  Floats x = randomFloats(1001, "x"), expected = x;
  for (float &each : expected)
    each *= 2;
  inEveryOrder([&] {
    Tensor<float> y(x, 1);
    mapElements(SimulatedStream(), {int64_t(1001)}, Double(), each(y.data()), each(y.in()));
    EXPECT_BITS(y, expected);
  });
}

//===-- Updates -----------------------------------------------------------------------------===//

struct momentum_step {
  Scalar rate_at, beta_at, apply_at, rounding_key_at, rounding_first_at;

  struct Element {
    float rate_f, keep_f;
    uint64_t key;
    bool applies, nearest;
    __device__ void operator()(int64_t i, float &p, float &m, float &rounded, float g) const {
      if (!applies) {
        rounded =
            nearest ? p : float(roundStochastically(p, uint16_t(mix64(key + uint64_t(i)) >> 48)));
        return;
      }
      // Fused by hand: nvcc would fuse this, the host compiler would not.
      m = fmaf(keep_f, g - m, m);
      p = fmaf(-rate_f, m, p);
      rounded = roundStochastically(p, uint16_t(mix64(key + uint64_t(i)) >> 48));
    }
  };

  __device__ Element prepare() const {
    const double rate = rate_at.read();
    const double beta = beta_at.read();
    const double apply = apply_at.read();
    const double rounding_key = rounding_key_at.read();
    const double rounding_first = rounding_first_at.read();
    const double keep = 1.0 - beta;
    return {float(rate), float(keep), uint64_t(rounding_key) + uint64_t(rounding_first), apply != 0,
            rounding_key < 0};
  }
};

TEST(Updates, ScalarsComeFromMemory) {
  Rank rank;
  rank.seed = 42;
  for (int64_t update : {1, 5})
    for (float applied : {0.0f, 1.0f})
      for (int64_t n : {1, 255, 9001}) {
        rank.update = update;
        Control control{0.01f, update, update, rank.seed, {}};
        Floats p = randomFloats(n, "p"), m = randomFloats(n, "m"),
               g = randomExact<BFloat16>(n, "g");
        double key = roundingKey(rank, 3, applied), keep = 1.0 - control.hyper.beta1;
        float rate = float(double(control.learningRate) * 0.5), kept = float(keep);
        Floats newP = p, newM = m;
        Narrow<BFloat16> rounded(static_cast<size_t>(n));
        for (size_t i = 0; i < size_t(n); ++i) {
          if (applied != 0) {
            newM[i] = std::fma(kept, g[i] - m[i], m[i]);
            newP[i] = std::fma(-rate, newM[i], p[i]);
          }
          auto random = uint16_t(mix64(uint64_t(key) + 7 + i) >> 48);
          rounded[i] = key < 0 ? BFloat16(newP[i]) : roundStochastically(newP[i], random);
        }
        inEveryOrder([&] {
          Tensor<float> pOf(p, 1), mOf(m);
          Tensor<BFloat16> gOf(g, 2), roundedOf(n);
          SimulatedStream stream;
          updateElements(stream, n,
                         momentum_step{Scalar(&control.learningRate, 0.5), &control.hyper.beta1,
                                       &applied, Scalar::roundingKey(&control, 3, &applied), 7.0},
                         updated(pOf.data()), updated(mOf.data()), each(roundedOf.data()),
                         each(gOf.in()));
          EXPECT_BITS(pOf, newP);
          EXPECT_BITS(mOf, newM);
          EXPECT_BITS(roundedOf, widened(rounded));
        });
      }
}

/// At element 0, 257 (which is not aligned), 9260 and 13400: p, m, what p is rounded to, g.
constexpr TensorRow<4> rowAt(int64_t element, int64_t elements, int step) {
  return {{4 * element, 4 * element, 2 * element, 2 * element}, elements, step, 0};
}
static constexpr TensorRow<4> kRows[] = {rowAt(0, 255, 1), rowAt(257, 9001, 0), rowAt(9258, 0, 1),
                                         rowAt(9260, 4096, 2), rowAt(13400, 1, 0)};
static __device__ const TensorTable kRowsOnDevice(kRows);

TEST(Updates, RowsOfATable) {
  constexpr int64_t n = 13401;
  Rank rank;
  rank.seed = 42;
  rank.update = 3;
  Control control{0.01f, 3, 3, rank.seed, {}};
  float applies = 1, skips = 0;
  auto step = [&](double rate, const float *applied, double first) {
    return momentum_step{Scalar(&control.learningRate, rate), &control.hyper.beta1, applied,
                         Scalar::roundingKey(&control, 3, applied), first};
  };
  std::initializer_list<momentum_step> steps = {step(0.5, &applies, 7.0), step(0.25, &applies, 0.0),
                                                step(0.5, &skips, 1.0)};
  Floats p = randomFloats(n, "p"), m = randomFloats(n, "m"), g = randomExact<BFloat16>(n, "g");
  for (auto [first, count] : {std::pair(0, 5), {1, 3}, {2, 1}}) {
    // One launch per row gives the same bits.
    Tensor<float> oneP(p), oneM(m);
    Tensor<BFloat16> oneG(g), oneRounded(p);
    SimulatedStream stream;
    for (const TensorRow<4> &row : tensorRows(kRows, first, count))
      updateElements(
          stream, row.elements, steps.begin()[row.step],
          updated(moved(oneP.data(), row.offsets[0])), updated(moved(oneM.data(), row.offsets[1])),
          each(moved(oneRounded.data(), row.offsets[2])), each(moved(oneG.in(), row.offsets[3])));
    inEveryOrder([&] {
      Tensor<float> allP(p), allM(m);
      Tensor<BFloat16> allG(g), allRounded(p);
      updateAll(stream, tensorRows(kRows, kRowsOnDevice, first, count), steps, updated(allP.data()),
                updated(allM.data()), each(allRounded.data()), each(allG.in()));
      EXPECT_BITS(allP, oneP.floats());
      EXPECT_BITS(allM, oneM.floats());
      EXPECT_BITS(allRounded, oneRounded.floats());
    });
  }
}

TEST(Updates, PowersOfAStepsNumber) {
  for (double base : {0.0, 0.9, 0.95, 0.999, 1.0})
    for (double t : {0.0, 1.0, 2.0, 7.0, 1000.0, 123456.0, 1e9})
      EXPECT_NEAR(power(base, t), std::pow(base, t), 1e-13) << base << " to the power of " << t;
  EXPECT_EQ(power(0.25, 0.5), 0.5);
  EXPECT_EQ(power(2.0, -1.0), 0.5);
}

struct squares_step {
  Scalar scale_at;
  struct Element {
    float scale_f;
    __device__ void operator()(int64_t, double (&sums)[2], float p, float g) const {
      const float u = scale_f * g;
      sums[0] += double(p) * double(p);
      sums[1] += double(u) * double(u);
    }
  };
  __device__ Element prepare() const { return {float(scale_at.read())}; }
};

TEST(Updates, Squares) {
  for (int64_t n : {0, 1, 4096, 20001}) {
    Floats p = randomFloats(n, "p"), g = randomExact<Half>(n, "g");
    Tensor<float> pOf(p, 1);
    Tensor<Half> gOf(g);
    float scale = 0.5f;
    double expected[2] = {0, 0}, first[2] = {-1, -1};
    for (size_t i = 0; i < size_t(n); ++i) {
      expected[0] += double(p[i]) * p[i];
      expected[1] += double(0.5f * g[i]) * double(0.5f * g[i]);
    }
    inEveryOrder([&] {
      SimulatedStream stream(updateSquaresScratch(n, 2));
      double sums[2] = {-1, -1};
      sumSquares<2, 0>(stream, sums, nullptr, n, squares_step{&scale}, each(pOf.in()),
                       each(gOf.in()));
      for (int i = 0; i < 2; ++i) {
        EXPECT_NEAR(sums[i], expected[i], 1e-12 * expected[i]);
        if (first[i] != -1) {
          EXPECT_EQ(sums[i], first[i]); // the same bits in every order
        }
        first[i] = sums[i];
      }
    });
  }
}

//===-- Scalars of a step -------------------------------------------------------------------===//

TEST(StepScalars, OfTheHostAndForIt) {
  SimulatedStream stream;
  Control control{0.5f, 7, 6, 99, {}};
  Report told{};
  float number = 0, value = 6, divisor = 4;
  int64_t key = 0, first = 0;
  stepNumber(stream, &number, &control);
  stepKey(stream, &key, &control);
  setScalar(stream, &first, int64_t(1) << 40);
  report(stream, &told.loss, &value, &divisor);
  report(stream, &told.tokenCount, &value);
  EXPECT_EQ(number, 6);
  EXPECT_EQ(key, int64_t(partita_rt::stepKey(99, 7)));
  EXPECT_EQ(first, int64_t(1) << 40);
  EXPECT_EQ(told.loss, 1.5f);
  EXPECT_EQ(told.tokenCount, 6);
}

TEST(StepScalars, FirstNonfinite) {
  SimulatedStream stream;
  double good[2] = {1, 2}, bad[3] = {3, INFINITY, NAN};
  int32_t first = 7;
  firstNonfinite(stream, &first, {{good, 2}}, {4, 3});
  EXPECT_EQ(first, -1);
  firstNonfinite(stream, &first, {{good, 2}, {bad, 3}}, {4, 3, 2, 9, 5});
  EXPECT_EQ(first, 5);
}

TEST(StepScalars, Integers) {
  SimulatedStream stream;
  Tensor<int64_t> x(9);
  fill(stream, x.data(), (int64_t(1) << 53) + 1, 9);
  EXPECT_EQ(x.values(), std::vector<int64_t>(9, (int64_t(1) << 53) + 1));
  iota(stream, x.data(), 3, 2, 9);
  EXPECT_EQ(x.values(), (std::vector<int64_t>{3, 5, 7, 9, 11, 13, 15, 17, 19}));
}

} // namespace
} // namespace partita_rt::cuda
