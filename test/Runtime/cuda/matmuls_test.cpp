// Matmuls of runtime/cuda by the simulated cuBLASLt, against the CPU's: small integers, of
// which every sum is exact, bit for bit in all combinations of types; epilogues and real numbers
// within roundings; which algorithm is taken.

#include "matmuls_stream.h"

namespace partita_rt::cuda {
namespace {

struct Size {
  int64_t m, n, k, pad;
};

template <typename A, typename B, typename C>
void checkCombination(MatmulsStream &stream, Size size, Trans ta, Trans tb) {
  auto [m, n, k, pad] = size;
  int64_t aRows = ta == Trans::No ? m : k, lda = (ta == Trans::No ? k : m) + pad;
  int64_t bRows = tb == Trans::No ? k : n, ldb = (tb == Trans::No ? n : k) + pad, ldc = n + pad;
  SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << " " << int(ta) << int(tb) << " "
                                  << nameOf(kDTypeOf<A>) << " " << nameOf(kDTypeOf<B>) << " "
                                  << nameOf(kDTypeOf<C>));
  Floats a = integers(lda * aRows, "a"), b = integers(ldb * bRows, "b"), c = integers(ldc * m, "c"),
         bias = integers(n, "bias"), expected = c, biased = c;
  partita_rt::gemm(ta, tb, m, n, k, 0.5f, a.data(), lda, b.data(), ldb, 2.0f, expected.data(), ldc);
  partita_rt::gemmBias(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, bias.data(), biased.data(),
                       ldc);
  Tensor<A> left(a);
  Tensor<B> right(b);
  Tensor<C> result(c), withBias(c), withFloat(c);
  Tensor<C> biasC(bias);
  Tensor<float> biasFloat(bias);
  gemm(stream, ta, tb, m, n, k, 0.5f, left.in(), lda, right.in(), ldb, 2.0f, result.data(), ldc);
  EXPECT_BITS(result, expected);
  gemmBias(stream, ta, tb, m, n, k, left.in(), lda, right.in(), ldb, biasC.in(), withBias.data(),
           ldc);
  EXPECT_BITS(withBias, biased);
  gemmBias(stream, ta, tb, m, n, k, left.in(), lda, right.in(), ldb, biasFloat.in(),
           withFloat.data(), ldc);
  EXPECT_BITS(withFloat, biased);
}

template <typename T> class CudaMatmuls : public testing::Test {};
TYPED_TEST_SUITE(CudaMatmuls, NarrowTypes);

TYPED_TEST(CudaMatmuls, AllTypesAndTransposes) {
  using T = TypeParam;
  MatmulsStream stream;
  for (Size size : {Size{16, 24, 32, 0}, Size{1, 1, 1, 0}, Size{5, 7, 9, 2}, Size{33, 1, 17, 1},
                    Size{1, 40, 12, 3}})
    for (Trans ta : {Trans::No, Trans::Yes})
      for (Trans tb : {Trans::No, Trans::Yes}) {
        checkCombination<float, float, float>(stream, size, ta, tb);
        checkCombination<T, T, T>(stream, size, ta, tb);
        checkCombination<T, T, float>(stream, size, ta, tb);
        checkCombination<T, float, T>(stream, size, ta, tb);
        checkCombination<T, float, float>(stream, size, ta, tb);
        checkCombination<float, T, T>(stream, size, ta, tb);
        checkCombination<float, T, float>(stream, size, ta, tb);
        checkCombination<float, float, T>(stream, size, ta, tb);
      }
}

TEST(CudaMatmul, RealNumbers) {
  MatmulsStream stream;
  const int64_t m = 37, n = 50, k = 600;
  Floats a = randomFloats(m * k, "a"), b = randomFloats(n * k, "b"), c(size_t(m * n), NAN);
  Floats expected(c.size());
  partita_rt::gemm(Trans::No, Trans::Yes, m, n, k, 1.0f, a.data(), k, b.data(), k, 0.0f,
                   expected.data(), n);
  gemm(stream, Trans::No, Trans::Yes, m, n, k, 1.0f, a.data(), k, b.data(), k, 0.0f, c.data(), n);
  EXPECT_CLOSE(c, widen(expected), 1e-6 * std::sqrt(double(k)));
}

TEST(CudaMatmul, ScratchIsWhatIsAnnounced) {
  constexpr DType kFloat = DType::Float32, kHalf = DType::BFloat16;
  Tensor<float> a(Floats(15, 1.0f)), bias(Floats(7, 1.0f));
  Tensor<BFloat16> b(Floats(35, 1.0f)), c(21);
  MatmulsStream enough(gemmBiasScratch(kFloat, kHalf, kHalf, kHalf, 3, 7, 5));
  MatmulsStream little(gemmScratch(kFloat, kHalf, kHalf, 3, 7, 5) - 1);
  auto make = [&](MatmulsStream &stream) {
    gemm(stream, Trans::No, Trans::No, 3, 7, 5, 1.0f, a.in(), 5, b.in(), 7, 0.0f, c.data(), 7);
  };
  make(enough);
  EXPECT_BITS(c, Floats(21, 5.0f));
  EXPECT_NE(errorOf([&] { make(little); }).find("scratch memory"), std::string::npos);
}

TEST(CudaMatmul, SumsOverNothing) {
  MatmulsStream stream;
  Floats c = integers(6, "c"), bias = {1, 2, 3}, nothing;
  Tensor<float> scaled(c), cleared(Floats(6, NAN)), biased(c), untouched(c);
  const float *no = nullptr;
  gemm(stream, Trans::No, Trans::No, 2, 3, 0, 1.0f, no, 1, no, 3, 2.0f, scaled.data(), 3);
  gemm(stream, Trans::No, Trans::No, 2, 3, 0, 1.0f, no, 1, no, 3, 0.0f, cleared.data(), 3);
  gemmBias(stream, Trans::No, Trans::No, 2, 3, 0, no, 1, no, 3, bias.data(), biased.data(), 3);
  gemm(stream, Trans::No, Trans::No, 0, 3, 4, 1.0f, no, 4, no, 3, 0.0f, untouched.data(), 3);
  gemmBatched(stream, Trans::No, Trans::No, 0, 2, 3, 4, 1.0f, no, 4, 8, no, 3, 12, 0.0f,
              untouched.data(), 3, 6);
  Floats twice = c;
  for (float &each : twice)
    each *= 2;
  EXPECT_BITS(scaled, twice);
  EXPECT_BITS(cleared, Floats(6, 0.0f));
  EXPECT_BITS(biased, (Floats{1, 2, 3, 1, 2, 3}));
  EXPECT_BITS(untouched, c);
}

template <typename A, typename T> void checkBatch(int64_t strideB) {
  const int64_t batch = 3, m = 4, n = 16, k = 8;
  MatmulsStream stream;
  Floats a = integers(batch * m * k, "a"), b = integers(batch * k * n, "b"),
         c = integers(batch * m * n, "c"), expected = c;
  Tensor<A> left(a);
  Tensor<T> right(b), result(c);
  partita_rt::gemmBatched(Trans::No, Trans::Yes, batch, m, n, k, 1.0f, a.data(), k, m * k, b.data(),
                          k, strideB, 1.0f, expected.data(), n, m * n);
  gemmBatched(stream, Trans::No, Trans::Yes, batch, m, n, k, 1.0f, left.in(), k, m * k, right.in(),
              k, strideB, 1.0f, result.data(), n, m * n);
  EXPECT_BITS(result, expected);
}

TYPED_TEST(CudaMatmuls, Batches) {
  checkBatch<TypeParam, TypeParam>(8 * 16);
  checkBatch<TypeParam, TypeParam>(0);
  checkBatch<float, TypeParam>(0);
}

//===-- Epilogues ---------------------------------------------------------------------------===//

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
double geluSlope(double x) {
  double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

#if defined(PARTITA_TEST_ON_GPU)
constexpr double kOfTanh = 1e-3; ///< cuBLASLt does not specify how it computes its own
#else
constexpr double kOfTanh = 1e-6;
#endif

template <typename T> class CudaEpilogues : public testing::Test {
protected:
  static constexpr double kTolerance = std::is_same_v<T, float>  ? kOfTanh
                                       : std::is_same_v<T, Half> ? 2e-3
                                                                 : 1.6e-2;
};
TYPED_TEST_SUITE(CudaEpilogues, StorageTypes);

/// n = 16: in one kernel; n = 13: in two.
TYPED_TEST(CudaEpilogues, Gelu) {
  using T = TypeParam;
  for (int64_t n : {16, 13}) {
    SCOPED_TRACE(n);
    const int64_t m = 6, k = 8;
    MatmulsStream stream;
    Floats x = randomExact<T>(m * k, "x"), w = randomExact<T>(k * n, "w", 0.3),
           bias = randomExact<T>(n, "bias"), sums(size_t(m * n));
    partita_rt::gemmBias(Trans::No, Trans::No, m, n, k, x.data(), k, w.data(), n, bias.data(),
                         sums.data(), n);
    Tensor<T> left(x), right(w), vector(bias), y(m * n), aux(m * n);
    gemmBiasGelu(stream, Trans::No, Trans::No, m, n, k, left.in(), k, right.in(), n, vector.in(),
                 y.data(), n, aux.data(), n);
    Doubles expected(sums.size());
    for (size_t i = 0; i < sums.size(); ++i)
      expected[i] = gelu(sums[i]);
    EXPECT_CLOSE(aux.floats(), widen(sums), this->kTolerance);
    EXPECT_CLOSE(y.floats(), expected, this->kTolerance);
    EXPECT_TRUE(y.marginsKept() && aux.marginsKept());

    Tensor<T> alone(m * n); // without its argument
    gemmBiasGelu(stream, Trans::No, Trans::No, m, n, k, left.in(), k, right.in(), n, vector.in(),
                 alone.data(), n);
    EXPECT_CLOSE(alone.floats(), expected, this->kTolerance);
    EXPECT_TRUE(alone.marginsKept());

    Floats stored = aux.floats(), matmul(sums.size());
    partita_rt::gemm(Trans::No, Trans::No, m, n, k, 1.0f, x.data(), k, w.data(), n, 0.0f,
                     matmul.data(), n);
    for (size_t i = 0; i < sums.size(); ++i)
      expected[i] = matmul[i] * geluSlope(stored[i]);
    Tensor<T> d(m * n);
    gemmGeluGrad(stream, Trans::No, Trans::No, m, n, k, left.in(), k, right.in(), n, aux.in(), n,
                 d.data(), n);
    EXPECT_NEAR_ALL(d, Floats(expected.begin(), expected.end()), this->kTolerance);

    Floats d0 = d.floats(), columns(static_cast<size_t>(n));
    partita_rt::columnSum(columns.data(), d0.data(), m, n, n);
    Tensor<T> again(m * n), made(n);
    gemmGeluGrad(stream, Trans::No, Trans::No, m, n, k, left.in(), k, right.in(), n, aux.in(), n,
                 again.data(), n, made.data());
    EXPECT_NEAR_ALL(again, d0, this->kTolerance);
    EXPECT_NEAR_ALL(made, columns, this->kTolerance);
    gemmGeluGrad<T>(stream, Trans::No, Trans::No, 0, n, k, nullptr, k, right.in(), n, nullptr, n,
                    nullptr, n, made.data());
    EXPECT_BITS(made, Floats(size_t(n)));
  }
}

template <typename G, typename T> void checkBiasGrad(int64_t m, int64_t n, Cotangent cotangent) {
  const int64_t k = 24;
  MatmulsStream stream;
  bool first = cotangent == Cotangent::A;
  Floats a = integers(k * m, "a"), b = integers(k * n, "b"), c = integers(m * n, "c"),
         sums = integers(first ? m : n, "sums");
  Tensor<T> left(a), right(b);
  for (Write write : {Write::Set, Write::Add}) {
    SCOPED_TRACE(testing::Message() << m << "x" << n << " " << int(cotangent) << int(write));
    Floats expected = c, expectedSums = sums;
    partita_rt::gemm(Trans::Yes, Trans::No, m, n, k, 1.0f, a.data(), m, b.data(), n,
                     write == Write::Add ? 1.0f : 0.0f, expected.data(), n);
    partita_rt::columnSum(expectedSums.data(), first ? a.data() : b.data(), k, first ? m : n,
                          first ? m : n, write);
    Tensor<G> result(c), made(sums);
    gemmBiasGrad(stream, cotangent, m, n, k, left.in(), m, right.in(), n, result.data(), n,
                 made.data(), write);
    EXPECT_BITS(result, expected);
    EXPECT_BITS(made, expectedSums);
  }
}

TYPED_TEST(CudaEpilogues, BiasGradient) {
  for (Cotangent cotangent : {Cotangent::A, Cotangent::B}) {
    checkBiasGrad<float, TypeParam>(16, 8, cotangent);
    checkBiasGrad<TypeParam, TypeParam>(8, 24, cotangent);
    checkBiasGrad<float, TypeParam>(5, 7, cotangent); // in two kernels
  }
}

/// n = 16: in one kernel; n = 13: separate from the matmul, with the bias in a kernel of its own.
/// Uses integers, so that the order of sums does not matter.
template <typename T> void checkAdd(int64_t m, int64_t n, int64_t k, bool hasBias, Trans transB) {
  SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << " " << hasBias << int(transB));
  MatmulsStream stream;
  const int64_t ldb = transB == Trans::Yes ? k : n, ldAddend = n + 8, ldc = n + 16;
  Floats a = integers(m * k, "a"), b = integers(k * n, "b"), bias = integers(n, "bias"),
         addend = integers(m * ldAddend, "addend"), dense(size_t(m * n)), apart(size_t(m * ldc), 7);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float x = addend[size_t(i * ldAddend + j)];
      dense[size_t(i * n + j)] = hasBias ? x + bias[size_t(j)] : x;
    }
  if (k > 0)
    partita_rt::gemm(Trans::No, transB, m, n, k, 1.0f, a.data(), k, b.data(), ldb, 1.0f,
                     dense.data(), n);
  Floats inPlace = addend;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      inPlace[size_t(i * ldAddend + j)] = apart[size_t(i * ldc + j)] = dense[size_t(i * n + j)];
  Tensor<T> left(a), right(b), row(bias), residual(addend), sum(Floats(apart.size(), 7.0f));
  const T *vector = hasBias ? row.in() : nullptr;
  gemmAdd(stream, Trans::No, transB, m, n, k, left.in(), std::max<int64_t>(k, 1), right.in(), ldb,
          vector, residual.in(), ldAddend, sum.data(), ldc);
  EXPECT_BITS(sum, apart);
  EXPECT_BITS(residual, addend);
  gemmAdd(stream, Trans::No, transB, m, n, k, left.in(), std::max<int64_t>(k, 1), right.in(), ldb,
          vector, residual.in(), ldAddend, residual.data(), ldAddend);
  EXPECT_BITS(residual, inPlace);
}

TYPED_TEST(CudaEpilogues, Addend) {
  for (bool hasBias : {false, true})
    for (int64_t n : {16, 13}) {
      checkAdd<TypeParam>(6, n, 8, hasBias, Trans::No);
      checkAdd<TypeParam>(6, n, 8, hasBias, Trans::Yes);
      checkAdd<TypeParam>(5, n, 0, hasBias, Trans::No);
    }
}

//===-- Choice of the algorithm -------------------------------------------------------------===//

#if !defined(PARTITA_TEST_ON_GPU) // which algorithms there are is for the simulated one to say
TEST(CudaMatmul, TheFirstThatFitsAndSumsInFloat) {
  MatmulsStream stream;
  Floats a = integers(128, "a"), b = integers(128, "b");
  Tensor<float> left(a), right(b), c(64), odd(a, 1);
  EXPECT_EQ(counted(simulated::kAligned, [&] { makeOne(stream, left, right, c); }), 1);
  EXPECT_EQ(counted(simulated::kAnywhere, [&] { makeOne(stream, odd, right, c); }), 1);
  EXPECT_EQ(counted(simulated::kAligned, [&] { makeOne(stream, left, right, c); }), 1);
}
#endif

TEST(CudaMatmul, MistakesAreNamed) {
  MatmulsStream stream;
  Tensor<float> a(Floats(64, 1.0f)), b(Floats(64, 1.0f)), c(64);
  std::string message = errorOf([&] {
    gemm(stream, Trans::No, Trans::No, 4, 8, 8, 1.0f, a.in(), 7, b.in(), 8, 0.0f, c.data(), 8);
  });
  EXPECT_NE(message.find("matmul float32[4, 8] by 7 * float32[8, 8] by 8 -> float32[4, 8] by 8"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("unsupported value"), std::string::npos) << message;
  SimulatedStream without;
  EXPECT_EQ(errorOf([&] {
              gemm(without, Trans::No, Trans::No, 4, 8, 8, 1.0f, a.in(), 8, b.in(), 8, 0.0f,
                   c.data(), 8);
            }),
            "a stream without matmuls");
}

TEST(CudaMatmul, InAGraphOnDeviceMemory) {
  OnDevice<unsigned char> space(std::vector<unsigned char>(kMatmulWorkspace, 0));
  Matmuls matmuls(space.data, kMatmulWorkspace);
  Stream stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream.handle, cudaStreamNonBlocking), cudaSuccess);
  stream.matmuls = &matmuls;
  Floats x = integers(8 * 16, "x"), w = integers(16 * 8, "w"), bias = integers(8, "bias");
  OnDevice<float> a(x), b(w), v(bias), y(Floats(64, NAN)), sum(Floats(64, 0.0f));
  cudaGraph_t graph;
  cudaGraphExec_t step;
  ASSERT_EQ(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  gemmBias(stream, Trans::No, Trans::No, 8, 8, 16, a.data, 16, b.data, 8, v.data, y.data, 8);
  gemm(stream, Trans::No, Trans::No, 8, 8, 8, 1.0f, y.data, 8, y.data, 8, 1.0f, sum.data, 8);
  ASSERT_EQ(cudaStreamEndCapture(stream.handle, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&step, graph), cudaSuccess);
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(cudaGraphLaunch(step, stream.handle), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream.handle), cudaSuccess);
  Floats made(64), twice(64);
  partita_rt::gemmBias(Trans::No, Trans::No, 8, 8, 16, x.data(), 16, w.data(), 8, bias.data(),
                       made.data(), 8);
  partita_rt::gemm(Trans::No, Trans::No, 8, 8, 8, 2.0f, made.data(), 8, made.data(), 8, 0.0f,
                   twice.data(), 8);
  EXPECT_EQ(y.values(), made);
  EXPECT_EQ(sum.values(), twice);
#if !defined(PARTITA_TEST_ON_GPU) // there the host's memory is the device's too
  EXPECT_NE(errorOf([&] {
              gemm(stream, Trans::No, Trans::No, 8, 8, 16, 1.0f, x.data(), 16, b.data, 8, 0.0f,
                   y.data, 8);
            }).find("failed to execute"),
            std::string::npos);
#endif
  cudaGraphExecDestroy(step);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream.handle);
}

} // namespace
} // namespace partita_rt::cuda
