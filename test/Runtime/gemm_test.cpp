// gemm against three loops in double.

#include "reference.h"

namespace partita_rt {
namespace {

struct Case {
  int64_t m, n, k;
};

class Gemm : public testing::TestWithParam<Case> {};

TEST_P(Gemm, EqualsThreeLoops) {
  auto [m, n, k] = GetParam();
  for (Trans ta : {Trans::No, Trans::Yes})
    for (Trans tb : {Trans::No, Trans::Yes}) {
      int64_t lda = (ta == Trans::No ? k : m) + 3, ldb = (tb == Trans::No ? n : k) + 1, ldc = n + 2;
      Floats a = randomFloats(lda * std::max(m, k), "a"),
             b = randomFloats(ldb * std::max(n, k), "b");
      Floats c = randomFloats(ldc * m, "c"), bias = randomFloats(n, "bias"), withBias = c;
      Doubles expected = widen(c), expectedBias = widen(c);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum += double(ta == Trans::No ? a[i * lda + l] : a[l * lda + i]) *
                   (tb == Trans::No ? b[l * ldb + j] : b[j * ldb + l]);
          expected[i * ldc + j] = 0.5 * sum + 2.0 * c[i * ldc + j];
          expectedBias[i * ldc + j] = sum + bias[j];
        }
      gemm(ta, tb, m, n, k, 0.5f, a.data(), lda, b.data(), ldb, 2.0f, c.data(), ldc);
      EXPECT_CLOSE(c, expected, 1e-6 * std::sqrt(double(k)));
      gemmBias(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, bias.data(), withBias.data(), ldc);
      EXPECT_CLOSE(withBias, expectedBias, 1e-6 * std::sqrt(double(k)));
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Gemm,
                         testing::Values(Case{1, 1, 1}, Case{1, 37, 53}, Case{41, 1, 29},
                                         Case{3, 5, 7}, Case{64, 64, 64}, Case{67, 33, 129},
                                         Case{48, 32, 32}, Case{61, 100, 400}, Case{800, 50, 70},
                                         Case{50, 1600, 33}, Case{96, 64, 1000}));

TEST(GemmBatched, SharesAnOperandOfStrideZero) {
  Floats a = randomFloats(3 * 4 * 5, "a"), b = randomFloats(5 * 6, "b"), c(3 * 4 * 6), one(4 * 6);
  gemmBatched(Trans::No, Trans::No, 3, 4, 6, 5, 1.0f, a.data(), 5, 20, b.data(), 6, 0, 0.0f,
              c.data(), 6, 24);
  for (int64_t i = 0; i < 3; ++i) {
    gemm(Trans::No, Trans::No, 4, 6, 5, 1.0f, a.data() + 20 * i, 5, b.data(), 6, 0.0f, one.data(),
         6);
    EXPECT_EQ(one, Floats(c.begin() + 24 * i, c.begin() + 24 * (i + 1)));
  }
}

TEST(Gemm, BetaZeroDoesNotReadC) {
  float nan = std::nanf("");
  for (int64_t m : {1, 3}) {
    Floats a = randomFloats(m * 4, "a"), b = randomFloats(4 * 5, "b"), c(size_t(m) * 5, nan);
    gemm(Trans::No, Trans::No, m, 5, 4, 1.0f, a.data(), 4, b.data(), 5, 0.0f, c.data(), 5);
    for (float value : c)
      EXPECT_FALSE(std::isnan(value));
  }
}

} // namespace
} // namespace partita_rt
