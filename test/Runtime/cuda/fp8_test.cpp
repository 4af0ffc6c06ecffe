// Matmuls in 8 bits: quantization bit for bit as the CPU's, in rows and transposed; the max; sums; matmuls
// by the simulated cuBLASLt, against the CPU's.

#include "matmuls_stream.h"

namespace partita_rt::cuda {
namespace {

template <typename F> std::vector<int> bitsOf(const F *numbers, int64_t n) {
  std::vector<int> bits;
  for (int64_t i = 0; i < n; ++i)
    bits.push_back(numbers[i].bits);
  return bits;
}

/// Numbers of many exponents, beyond the max of both formats and below their min; infinities.
Floats numbers(int64_t n, const char *name) {
  Floats values = randomFloats(n, name);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::ldexp(values[i], int(i * 7 % 41) - 22);
  if (n > 9) {
    values[3] = INFINITY;
    values[4] = -INFINITY;
    values[9] = 0.0f;
  }
  return values;
}

/// A matrix quantized by the CPU's kernel.
template <typename F, typename X> struct Reference {
  std::vector<F> rows;
  std::vector<int> columns;
  float max;

  Reference(const Tensor<X> &x, int64_t height, int64_t width, float scale, float before)
      : rows(size_t(height * width)), columns(rows.size()), max(before) {
    partita_rt::quantize(rows.data(), x.in(), &scale, &max, height * width);
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < width; ++j)
        columns[size_t(j * height + i)] = rows[size_t(i * width + j)].bits;
  }
  std::vector<int> bits() const { return bitsOf(rows.data(), int64_t(rows.size())); }
};

template <typename F, typename X> void checkRows(int64_t n, int64_t offset) {
  SCOPED_TRACE(testing::Message() << n << " elements at " << offset);
  SimulatedStream stream;
  Floats values = numbers(n, "x");
  Tensor<X> x(values, offset), back(n, offset), expectedBack(n);
  float scale = 0.125f;
  for (float before : {0.0f, 1e9f}) {
    Reference<F, X> reference(x, 1, n, scale, before);
    Tensor<F> y(n, offset);
    Tensor<float> scales(Floats{scale}), max(Floats{before});
    quantize(stream, y.data(), x.in(), scales.in(), max.data(), n);
    EXPECT_EQ(bitsOf(y.in(), n), reference.bits());
    EXPECT_TRUE(y.marginsKept());
    EXPECT_EQ(max.in()[0], reference.max);
    Fp8 format = std::is_same_v<F, Float8E4M3> ? Fp8::E4M3 : Fp8::E5M2;
    partita_rt::throughFp8(format, expectedBack.data(), x.in(), &scale, nullptr, n);
    throughFp8(stream, format, back.data(), x.in(), scales.in(), nullptr, n);
    EXPECT_BITS(back, expectedBack.floats());
  }
}

template <typename F, typename X>
void checkColumns(int64_t rows, int64_t width, int64_t offset, bool both) {
  SCOPED_TRACE(testing::Message() << rows << " x " << width << " at " << offset);
  SimulatedStream stream;
  Tensor<X> x(numbers(rows * width, "x"), offset);
  float scale = 0x1p-6f;
  Reference<F, X> reference(x, rows, width, scale, 3.0f);
  Tensor<F> y(rows * width, offset), columns(rows * width, offset);
  Tensor<float> scales(Floats{scale}), max(Floats{3.0f});
  quantizeTransposed(stream, both ? y.data() : nullptr, columns.data(), x.in(), scales.in(),
                     both ? max.data() : nullptr, nullptr, rows, width);
  EXPECT_EQ(bitsOf(columns.in(), rows * width), reference.columns);
  EXPECT_TRUE(columns.marginsKept());
  EXPECT_TRUE(y.marginsKept());
  if (both) {
    EXPECT_EQ(bitsOf(y.in(), rows * width), reference.bits());
    EXPECT_EQ(max.in()[0], reference.max);
  }
}

/// Sums of columns beside the numbers, which do not change: exact, since all are small integers.
template <typename F, typename X>
void checkSums(int64_t rows, int64_t width, int64_t offset, bool both) {
  SCOPED_TRACE(testing::Message() << rows << " x " << width << " at " << offset);
  SimulatedStream stream(quantizeSumsScratch(rows, width));
  Tensor<X> x(integers(rows * width, "x"), offset), sums(width, offset);
  float scale = 0.5f;
  Reference<F, X> reference(x, rows, width, scale, 0.0f);
  Tensor<F> y(rows * width, offset), columns(rows * width, offset);
  Tensor<float> scales(Floats{scale});
  quantizeTransposed(stream, both ? y.data() : nullptr, columns.data(), x.in(), scales.in(),
                     nullptr, sums.data(), rows, width);
  Floats values = x.floats(), expected(size_t(width), 0.0f);
  for (size_t i = 0; i < values.size(); ++i)
    expected[i % size_t(width)] += values[i];
  for (float &each : expected)
    each = float(X(each));
  EXPECT_BITS(sums, expected);
  EXPECT_EQ(bitsOf(columns.in(), rows * width), reference.columns);
  EXPECT_TRUE(columns.marginsKept());
  if (both) {
    EXPECT_EQ(bitsOf(y.in(), rows * width), reference.bits());
  }
}

template <typename F, typename X> void checkQuantization() {
  inEveryOrder([] {
    for (int64_t n : {1, 8, 300, 5000})
      for (int64_t offset : {0, 3})
        checkRows<F, X>(n, offset);
    for (auto [rows, width] : {std::pair(16, 16), {128, 64}, {48, 208}, {272, 80}, {13, 70}})
      for (int64_t offset : {0, 5})
        for (bool both : {true, false})
          checkColumns<F, X>(rows, width, offset, both);
    for (auto [rows, width] : {std::pair(16, 16), {272, 80}, {13, 70}, {0, 16}})
      for (bool both : {true, false})
        checkSums<F, X>(rows, width, both ? 0 : 5, both);
  });
}

TEST(CudaFp8, QuantizesE4M3) {
  checkQuantization<Float8E4M3, BFloat16>();
  checkQuantization<Float8E4M3, float>();
}
TEST(CudaFp8, QuantizesE5M2) {
  checkQuantization<Float8E5M2, BFloat16>();
  checkQuantization<Float8E5M2, float>();
}

TEST(CudaFp8, KeepsNaN) {
  SimulatedStream stream;
  Tensor<BFloat16> x(Floats{1.0f, NAN, -NAN, 2.0f});
  Tensor<Float8E4M3> y(4), columns(4);
  Tensor<float> scale(Floats{1.0f}), max(Floats{0.0f});
  quantizeTransposed(stream, y.data(), columns.data(), x.in(), scale.in(), max.data(), nullptr, 2,
                     2);
  EXPECT_TRUE(std::isnan(float(y.in()[1])) && std::isnan(float(y.in()[2])));
  EXPECT_TRUE(std::isnan(float(columns.in()[2])) && std::isnan(float(columns.in()[1])));
  EXPECT_EQ(max.in()[0], 2.0f); // of the finite ones
}

template <typename A, typename B, typename C>
void checkScaled(MatmulsStream &stream, int64_t m, int64_t n, int64_t k) {
  SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k);
  Floats x = integers(m * k, "a"), y = integers(n * k, "b");
  Tensor<A> a(x);
  Tensor<B> b(y);
  Tensor<C> c(m * n);
  Narrow<C> expected(size_t(m * n));
  Tensor<float> scales(Floats{0x1p-3f, 0, 0, 0, 0x1p5f});
  const float *scaleA = scales.in(), *scaleB = scales.in() + 4; // as in rows of scales
  partita_rt::scaledGemm(Trans::No, Trans::Yes, m, n, k, a.in(), scaleA, b.in(), scaleB,
                         expected.data());
  scaledGemm(stream, Trans::No, Trans::Yes, m, n, k, a.in(), scaleA, b.in(), scaleB, c.data());
  EXPECT_BITS(c, widened(expected));
  // A bias, an addend, in place too, and both, rounded once.
  Floats exact(size_t(m * n)), more = integers(m * n, "addend"), row = integers(n, "bias");
  partita_rt::scaledGemm(Trans::No, Trans::Yes, m, n, k, a.in(), scaleA, b.in(), scaleB,
                         exact.data());
  Tensor<C> addend(more), bias(row), inPlace(more);
  auto sums = [&](bool adds, bool hasBias) {
    Floats all = exact;
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = float(C(all[i] + (adds ? more[i] : 0) + (hasBias ? row[i % size_t(n)] : 0)));
    return all;
  };
  auto run = [&](Tensor<C> &to, const C *vector, const C *plus) {
    scaledGemm(stream, Trans::No, Trans::Yes, m, n, k, a.in(), scaleA, b.in(), scaleB, to.data(),
               vector, plus);
  };
  run(c, nullptr, addend.in());
  EXPECT_BITS(c, sums(true, false));
  run(inPlace, nullptr, inPlace.in());
  EXPECT_BITS(inPlace, sums(true, false));
  run(c, bias.in(), addend.in());
  EXPECT_BITS(c, sums(true, true));
  run(c, bias.in(), nullptr);
  EXPECT_BITS(c, sums(false, true));
}

template <typename C> void checkAllScaled(MatmulsStream &stream) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{16, 16, 16}, {48, 80, 64}, {32, 16, 112}}) {
    checkScaled<Float8E4M3, Float8E4M3, C>(stream, m, n, k);
    checkScaled<Float8E5M2, Float8E4M3, C>(stream, m, n, k);
    checkScaled<Float8E4M3, Float8E5M2, C>(stream, m, n, k);
  }
}

TEST(CudaFp8, Multiplies) {
  MatmulsStream stream;
  checkAllScaled<BFloat16>(stream);
  checkAllScaled<float>(stream);
}

TEST(CudaFp8, Tunes) {
  MatmulsStream stream;
  Tensor<Float8E4M3> a(integers(32 * 48, "a"));
  Tensor<Float8E5M2> b(integers(16 * 48, "b"));
  Tensor<BFloat16> c(32 * 16);
  Tensor<float> scale(Floats{2.0f});
  auto multiply = [&] {
    scaledGemm(stream, Trans::No, Trans::Yes, 32, 16, 48, a.in(), scale.in(), b.in(), scale.in(),
               c.data());
  };
  multiply();
  Floats before = c.floats();
  stream.made.beginRecording();
  multiply();
  std::vector<Choice> choices = stream.made.tuneRecorded(stream, 1);
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].shape.find("matmul float8_e4m3fn[32, 48] by 48 * float8_e5m2[16, 48] by 48 "
                                  "transposed -> bfloat16[32, 16] by 16"),
            0u)
      << choices[0].shape;
  multiply(); // by the choice
  EXPECT_BITS(c, before);
}

TEST(CudaFp8, RefusesOtherLayouts) {
  MatmulsStream stream;
  Tensor<Float8E4M3> a(256), b(256);
  Tensor<BFloat16> c(256);
  Tensor<float> scale(Floats{1.0f});
  for (Trans trans : {Trans::No, Trans::Yes}) {
    std::string error = errorOf([&] {
      scaledGemm(stream, trans, trans == Trans::No ? Trans::No : Trans::Yes, 16, 16, 16, a.in(),
                 scale.in(), b.in(), scale.in(), c.data());
    });
    EXPECT_NE(error.find("only along k"), std::string::npos) << error;
  }
}

} // namespace
} // namespace partita_rt::cuda
