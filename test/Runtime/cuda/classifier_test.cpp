// The classifier's loss and gradients of runtime/cuda against the CPU's.

#include "matmuls_stream.h"

namespace partita_rt::cuda {
namespace {

template <typename T> class CudaClassifier : public testing::Test {
protected:
  static constexpr double kTolerance = std::is_same_v<T, float>  ? 5e-6
                                       : std::is_same_v<T, Half> ? 2e-3
                                                                 : 1.6e-2;
};
TYPED_TEST_SUITE(CudaClassifier, StorageTypes);

/// The floats that take the memory of elements of T.
template <typename T> int64_t floatsOf(int64_t elements) {
  return ceilDiv(elements * int64_t(sizeof(T)), 4);
}

/// Compares with the CPU: the logits are rounded like a tensor in T.
TYPED_TEST(CudaClassifier, EqualsTheCpus) {
  using T = TypeParam;
  const int64_t rows = 21, width = 16, vocabulary = 51, atOnce = 8, columns = 16;
  MatmulsStream stream;
  Floats x = randomExact<T>(rows * width, "x"), w = randomExact<T>(vocabulary * width, "w", 0.3),
         seeds = randomFloats(rows, "dloss");
  std::vector<int64_t> labels(size_t(rows), 0);
  for (int64_t i = 0; i < rows; ++i)
    labels[size_t(i)] = i % 5 == 3 ? -100 : (i * 7919 + vocabulary - 1) % vocabulary;
  Floats loss(size_t(rows), NAN), dx(x.size(), NAN), dw(w.size(), NAN),
      scratch(size_t(atOnce * (64 + columns)), NAN);
  partita_rt::classifierLossGrad(loss.data(), dx.data(), dw.data(), seeds.data(), 1, x.data(),
                                 w.data(), labels.data(), rows, width, vocabulary, -100,
                                 scratch.data(), {atOnce, columns});
  Tensor<T> left(x), right(w), ourDx(rows * width);
  const int64_t stride = classifierStride(vocabulary);
  Tensor<float> ourDw(vocabulary * width), ourLoss(rows), alone(rows),
      space(floatsOf<T>(atOnce * stride)), block(floatsOf<T>(rows * stride));
  classifierLossGrad(stream, ourLoss.data(), ourDx.data(), ourDw.data(), seeds.data(), 1, left.in(),
                     right.in(), labels.data(), rows, width, vocabulary, -100, space.data(),
                     {atOnce, stride});
  EXPECT_NEAR_ALL(ourLoss, loss, this->kTolerance);
  EXPECT_NEAR_ALL(ourDx, dx, this->kTolerance);
  EXPECT_NEAR_ALL(ourDw, dw, this->kTolerance);
  EXPECT_TRUE(space.marginsKept());
  classifierLoss(stream, alone.data(), left.in(), right.in(), labels.data(), rows, width,
                 vocabulary, -100, block.data(), {rows, stride});
  EXPECT_BITS_OR_NEAR(alone, ourLoss.floats(), this->kTolerance);
  EXPECT_NE(errorOf([&] {
              classifierLoss(stream, alone.data(), left.in(), right.in(), labels.data(), rows,
                             width, vocabulary, -100, block.data(), {1, 16});
            }).find("a block of 1 x 16 logits, rows have 51"),
            std::string::npos);
  labels[20] = vocabulary;
  classifierLossGrad(stream, ourLoss.data(), ourDx.data(), ourDw.data(), seeds.data(), 1, left.in(),
                     right.in(), labels.data(), rows, width, vocabulary, -100, space.data(),
                     {atOnce, stride});
  EXPECT_EQ(stream.faults.position, 20);
  EXPECT_EQ(stream.faults.value, vocabulary);
}

/// Whatever the number of row blocks, a 16-bit gradient of the weight is the float one, rounded; if
/// all rows fit, it needs no memory for its sums.
template <typename T>
void checkWeightGradient(int64_t vocabulary, int64_t atOnce, bool sumsUp,
                         [[maybe_unused]] double tolerance) {
  SCOPED_TRACE(testing::Message() << vocabulary << " " << atOnce);
  const int64_t rows = 150, width = 8, columns = classifierStride(vocabulary);
  const int64_t logits = floatsOf<T>(atOnce * columns);
  MatmulsStream stream;
  Tensor<T> x(randomExact<T>(rows * width, "x")), w(randomExact<T>(vocabulary * width, "w")),
      dx(rows * width), dw(vocabulary * width);
  Tensor<float> loss(rows), wide(vocabulary * width), alone(logits),
      space(logits + (sumsUp ? vocabulary * width : 0));
  Floats seeds = randomFloats(rows, "dloss");
  std::vector<int64_t> labels(size_t(rows), 0);
  for (int64_t i = 0; i < rows; ++i)
    labels[size_t(i)] = i * 7919 % vocabulary;
  auto make = [&](auto *gradient, float *scratch) {
    classifierLossGrad(stream, loss.data(), dx.data(), gradient, seeds.data(), 1, x.in(), w.in(),
                       labels.data(), rows, width, vocabulary, -100, scratch, {atOnce, columns});
  };
  make(wide.data(), alone.data());
  make(dw.data(), space.data());
  EXPECT_TRUE(alone.marginsKept() && space.marginsKept());
  Floats expected = wide.floats();
  for (float &each : expected)
    each = T(each);
  EXPECT_BITS_OR_NEAR(dw, expected, tolerance);
}

#if !defined(PARTITA_TEST_ON_GPU)
int64_t matmulsSoFar() {
  int64_t sum = 0;
  for (int each = 0; each < simulated::kAlgorithms; ++each)
    sum += simulated::matmulsBy(simulated::Algorithm(each));
  return sum;
}
#endif

/// Rows of zeros behind w change nothing but the number of matmuls, and there is no padding in dw.
template <typename T>
void checkPadding(int64_t padded, int64_t atOnce, [[maybe_unused]] int64_t matmuls,
                  double tolerance) {
  SCOPED_TRACE(testing::Message() << padded << " " << atOnce);
  const int64_t rows = 150, width = 8, vocabulary = 27;
  MatmulsStream stream;
  Floats weight = randomExact<T>(vocabulary * width, "w"), seeds = randomFloats(rows, "dloss");
  weight.resize(size_t(padded * width), 0.0f);
  Tensor<T> x(randomExact<T>(rows * width, "x")), w(weight);
  std::vector<int64_t> labels(size_t(rows), 0);
  for (int64_t i = 0; i < rows; ++i)
    labels[size_t(i)] = i * 7919 % vocabulary;
  struct Results {
    Tensor<float> loss{rows}, alone{rows};
    Tensor<T> dx{rows * width}, dw{vocabulary * width};
  } plain, results;
  auto make = [&](Results &to, PaddedRows of) {
    const int64_t columns = classifierStride(of.inMemory);
    const int64_t logits = floatsOf<T>(atOnce * columns);
    Tensor<float> space(logits + of.inMemory * width);
    classifierLoss(stream, to.alone.data(), x.in(), w.in(), labels.data(), rows, width, of, -100,
                   space.data(), {atOnce, columns});
    auto grad = [&] {
      classifierLossGrad(stream, to.loss.data(), to.dx.data(), to.dw.data(), seeds.data(), 1,
                         x.in(), w.in(), labels.data(), rows, width, of, -100, space.data(),
                         {atOnce, columns});
    };
#if !defined(PARTITA_TEST_ON_GPU)
    int64_t before = matmulsSoFar();
    grad();
    EXPECT_EQ(matmulsSoFar() - before, of.inMemory > of.rows ? matmuls : 2 * matmuls);
#else
    grad();
#endif
    EXPECT_TRUE(space.marginsKept() && to.dx.marginsKept() && to.dw.marginsKept());
  };
  make(plain, vocabulary);
  make(results, {vocabulary, padded});
  EXPECT_NEAR_ALL(results.loss, plain.loss.floats(), tolerance);
  EXPECT_NEAR_ALL(results.alone, plain.alone.floats(), tolerance);
  EXPECT_NEAR_ALL(results.dx, plain.dx.floats(), tolerance);
  EXPECT_NEAR_ALL(results.dw, plain.dw.floats(), tolerance);
}

TYPED_TEST(CudaClassifier, MultipliesRowsOfZerosLikeTheOthers) {
  if constexpr (!std::is_same_v<TypeParam, float>)
    for (int64_t padded : {32, 64})
      checkPadding<TypeParam>(padded, 8, 19 * 3, this->kTolerance); // 19 blocks of 8 rows
}

TYPED_TEST(CudaClassifier, RoundsTheWeightsGradientOnce) {
  if constexpr (!std::is_same_v<TypeParam, float>) {
    for (int64_t vocabulary : {24, 27}) { // 27: the odd columns are separate matmuls
      checkWeightGradient<TypeParam>(vocabulary, 8, true, this->kTolerance); // 19 blocks of 8 rows
      checkWeightGradient<TypeParam>(vocabulary, 150, false, this->kTolerance);
    }
  }
}

} // namespace
} // namespace partita_rt::cuda
