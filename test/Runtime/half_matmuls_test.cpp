// Kernels on 16-bit tensors: matmuls, the classifier and attention.

#include "half_reference.h"

extern "C" void openblas_set_num_threads(int);

namespace partita_rt {
namespace {

/// Uses one BLAS thread, as a rank does: several would split matmuls among them, differently for
/// each size.
template <typename T> class HalfMatmuls : public testing::Test {
  void SetUp() override { openblas_set_num_threads(1); }
};
TYPED_TEST_SUITE(HalfMatmuls, NarrowTypes);

struct Size {
  int64_t m, n, k;
};

/// Is each within one value of T, or within the roundings of float sums?
template <typename T> bool near(const std::vector<T> &actual, const Floats &expected) {
  double sums = 0;
  for (float x : expected)
    sums = std::max(sums, std::fabs(double(x)) * 1e-5);
  double step = std::is_same_v<T, Half> ? 1e-3 : std::is_same_v<T, BFloat16> ? 8e-3 : 0;
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(double(actual[i]) - expected[i]) <= sums + step * std::fabs(expected[i])))
      return false;
  return true;
}

/// Checks all combinations of storage types against the float matmul of the same numbers. `exact`:
/// B is one panel.
template <typename T>
void checkGemm(Size size, Trans ta, Trans tb, bool all = true, bool exact = true) {
  auto [m, n, k] = size;
  int64_t lda = (ta == Trans::No ? k : m) + 3, ldb = (tb == Trans::No ? n : k) + 1, ldc = n + 2;
  Floats a = randomExact<T>(lda * (ta == Trans::No ? m : k), "a"),
         b = randomExact<T>(ldb * (tb == Trans::No ? k : n), "b"), c = randomExact<T>(ldc * m, "c"),
         bias = randomExact<T>(n, "bias"), expected = c, withBias = c;
  Narrow<T> na = rounded<T>(a), nb = rounded<T>(b), nc = rounded<T>(c), nbias = rounded<T>(bias);
  gemm(ta, tb, m, n, k, 0.5f, a.data(), lda, b.data(), ldb, 2.0f, expected.data(), ldc);
  gemmBias(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, bias.data(), withBias.data(), ldc);
  SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << " " << int(ta) << int(tb));
  auto check = [&](auto &left, auto &right, auto result) {
    auto biased = result, biasedByFloat = result;
    gemm(ta, tb, m, n, k, 0.5f, left.data(), lda, right.data(), ldb, 2.0f, result.data(), ldc);
    EXPECT_TRUE(exact ? difference(result, expected) == -1 : near(result, expected));
    gemmBias(ta, tb, m, n, k, left.data(), lda, right.data(), ldb, nbias.data(), biased.data(),
             ldc);
    EXPECT_TRUE(exact ? difference(biased, withBias) == -1 : near(biased, withBias));
    gemmBias(ta, tb, m, n, k, left.data(), lda, right.data(), ldb, bias.data(),
             biasedByFloat.data(), ldc);
    EXPECT_TRUE(exact ? difference(biasedByFloat, withBias) == -1 : near(biasedByFloat, withBias));
  };
  check(na, nb, nc);
  check(na, nb, c);
  if (!all)
    return;
  check(na, b, nc);
  check(na, b, c);
  check(a, nb, nc);
  check(a, nb, c);
  check(a, b, nc);
}

TYPED_TEST(HalfMatmuls, GemmIsTheFloatMatmulRounded) {
  for (Size size : {Size{1, 1, 1},
                    {1, 37, 53},
                    {41, 1, 29},
                    {3, 5, 7},
                    {64, 64, 64},
                    {67, 33, 129},
                    {61, 100, 400},
                    {2, 3, 0},
                    {0, 3, 2}})
    for (Trans ta : {Trans::No, Trans::Yes})
      for (Trans tb : {Trans::No, Trans::Yes})
        checkGemm<TypeParam>(size, ta, tb);
}

/// Several panels of A, and sums that are split.
TYPED_TEST(HalfMatmuls, GemmByPanels) {
  constexpr std::pair<Trans, Trans> kinds[] = {
      {Trans::No, Trans::No}, {Trans::No, Trans::Yes}, {Trans::Yes, Trans::No}};
  for (Size size : {Size{333, 301, 1603}, {83, 50, 2001}, {2003, 17, 200}})
    for (auto [ta, tb] : kinds)
      checkGemm<TypeParam>(size, ta, tb, size.k < 1000 && tb == Trans::No);
  for (Size size : {Size{20, 3001, 300}, {60, 900, 1000}}) // and of B
    for (auto [ta, tb] : kinds)
      checkGemm<TypeParam>(size, ta, tb, false, false);
  checkGemm<TypeParam>({300000, 2, 1}, Trans::No, Trans::No, false);
  for (Trans t : {Trans::No, Trans::Yes}) {
    checkGemm<TypeParam>({1, 150, 5003}, t, t);
    checkGemm<TypeParam>({150, 1, 5003}, t, t);
    checkGemm<TypeParam>({1, 700, 5003}, t, t, true, false);
    checkGemm<TypeParam>({1, 100, 30000}, t, t, true, false);
  }
}

TYPED_TEST(HalfMatmuls, GemmBatchedAndBetaZero) {
  using T = TypeParam;
  Floats a = randomExact<T>(3 * 4 * 5, "a"), b = randomExact<T>(5 * 6, "b"), c(3 * 4 * 6);
  Narrow<T> na = rounded<T>(a), nb = rounded<T>(b), nc(c.size(), T(NAN));
  gemmBatched(Trans::No, Trans::No, 3, 4, 6, 5, 1.0f, a.data(), 5, 20, b.data(), 6, 0, 0.0f,
              c.data(), 6, 24);
  gemmBatched(Trans::No, Trans::No, 3, 4, 6, 5, 1.0f, na.data(), 5, 20, nb.data(), 6, 0, 0.0f,
              nc.data(), 6, 24);
  EXPECT_ROUNDED(nc, c);
  Narrow<T> row(6, T(NAN));
  gemm(Trans::No, Trans::No, 1, 6, 5, 1.0f, na.data(), 5, nb.data(), 6, 0.0f, row.data(), 6);
  EXPECT_FALSE(std::isnan(float(row[0])));
}

TEST(HalfMatmuls, OverflowIsInfinity) {
  Half a[] = {Half(60000.0f), Half(1.0f)}, b[] = {Half(2.0f), Half(-1.0f)}, c[1];
  gemm(Trans::No, Trans::No, 1, 1, 1, 1.0f, a, 1, b, 1, 0.0f, c, 1);
  EXPECT_EQ(float(c[0]), INFINITY);
  gemm(Trans::No, Trans::No, 1, 1, 2, 1.0f, a, 2, b, 1, -1.0f, c, 1); // 119999 - inf
  EXPECT_EQ(float(c[0]), -INFINITY);
}

TYPED_TEST(HalfMatmuls, Classifier) {
  using T = TypeParam;
  constexpr int64_t rows = 33, width = 24, vocabulary = 301, columns = 64;
  Floats x = randomExact<T>(rows * width, "x"), w = randomExact<T>(vocabulary * width, "w"),
         seeds = randomFloats(rows, "dloss");
  std::vector<int64_t> labels(rows);
  for (int64_t i = 0; i < rows; ++i)
    labels[i] = i % 5 == 3 ? -100 : (i * 7919) % vocabulary;
  Narrow<T> nx = rounded<T>(x), nw = rounded<T>(w), ndx(x.size()), ndw(w.size());
  for (int64_t rowsAtOnce : {rows, int64_t{16}}) {
    Floats scratch(size_t(rowsAtOnce * (columns * 6 + width) + vocabulary * width), NAN),
        loss(rows), alone(rows), dx(x.size()), dw(w.size()), narrowLoss(rows), wide(w.size());
    classifierLossGrad(loss.data(), dx.data(), dw.data(), seeds.data(), 1, x.data(), w.data(),
                       labels.data(), rows, width, vocabulary, -100, scratch.data(),
                       {rowsAtOnce, columns});
    classifierLossGrad(narrowLoss.data(), ndx.data(), wide.data(), seeds.data(), 1, nx.data(),
                       nw.data(), labels.data(), rows, width, vocabulary, -100, scratch.data(),
                       {rowsAtOnce, columns});
    EXPECT_EQ(narrowLoss, loss);
    EXPECT_ROUNDED(ndx, dx);
    EXPECT_EQ(wide, dw);
    classifierLossGrad(narrowLoss.data(), ndx.data(), ndw.data(), seeds.data(), 1, nx.data(),
                       nw.data(), labels.data(), rows, width, vocabulary, -100, scratch.data(),
                       {rowsAtOnce, columns});
    EXPECT_ROUNDED(ndw, dw);
    classifierLoss(alone.data(), nx.data(), nw.data(), labels.data(), rows, width, vocabulary, -100,
                   scratch.data(), {rowsAtOnce, columns});
    EXPECT_EQ(alone, loss);
  }
}

template <typename T> HeadsOf<T> plainHeads(T *data, int64_t sequence, int64_t heads, int64_t dim) {
  return {data, sequence * heads * dim, heads * dim, dim};
}
template <typename T>
HeadsOf<const T> plainHeads(const std::vector<T> &data, int64_t s, int64_t h, int64_t d) {
  return plainHeads(data.data(), s, h, d);
}

struct AttentionCase {
  AttentionShape shape;
  bool bias;
};

/// `B`: the storage type of the bias.
template <typename T, typename B> void checkAttention(const AttentionCase &c) {
  const AttentionShape &a = c.shape;
  int64_t kv = a.heads / a.groups;
  int64_t nq = a.batch * a.sequence * a.heads, nk = a.batch * a.keySequence * kv;
  Floats q = randomExact<T>(nq * a.headDim, "q"), k = randomExact<T>(nk * a.headDim, "k"),
         v = randomExact<T>(nk * a.valueDim, "v"), dout = randomExact<T>(nq * a.valueDim, "dout"),
         bias = randomExact<T>(a.sequence * a.keySequence, "bias"), dbias(bias.size()),
         ndbias(bias.size());
  Narrow<T> nq_ = rounded<T>(q), nk_ = rounded<T>(k), nv = rounded<T>(v), ndout = rounded<T>(dout),
            nout(dout.size(), T(NAN)), ndq(q.size(), T(NAN)), ndk(k.size(), T(NAN)),
            ndv(v.size(), T(NAN));
  std::vector<B> nbias(bias.size());
  for (size_t i = 0; i < bias.size(); ++i)
    nbias[i] = B(bias[i]);
  Floats out(dout.size()), lse(nq), nlse(nq), dq(q.size()), dk(k.size()), dv(v.size());
  ConstScores scores;
  Scores dscores, ndscores;
  ScoresOf<const T> nscores;
  if (c.bias) {
    scores = {bias.data(), 0, 0, a.keySequence, 1};
    dscores = {dbias.data(), 0, 0, a.keySequence, 1};
    nscores = {nbias.data(), 0, 0, a.keySequence, 1};
    ndscores = {ndbias.data(), 0, 0, a.keySequence, 1};
  }
  int64_t s = a.sequence, h = a.heads, t = a.keySequence, d = a.headDim, e = a.valueDim;
  attentionForward(plainHeads(out.data(), s, h, e), lse.data(), plainHeads(q, s, h, d),
                   plainHeads(k, t, kv, d), plainHeads(v, t, kv, e), a, scores);
  attentionForward(plainHeads(nout.data(), s, h, e), nlse.data(), plainHeads(nq_, s, h, d),
                   plainHeads(nk_, t, kv, d), plainHeads(nv, t, kv, e), a, nscores);
  EXPECT_ROUNDED(nout, out);
  EXPECT_EQ(nlse, lse);
  out = widened(nout); // the 16-bit backward pass reads this
  Floats delta(size_t(attentionWorkspace(a, DType::Float32))),
      workspace(size_t(attentionWorkspace(a, kDTypeOf<T>)), NAN);
  attentionBackward(plainHeads(dq.data(), s, h, d), plainHeads(dk.data(), t, kv, d),
                    plainHeads(dv.data(), t, kv, e), delta.data(), plainHeads(dout, s, h, e),
                    plainHeads(out, s, h, e), lse.data(), plainHeads(q, s, h, d),
                    plainHeads(k, t, kv, d), plainHeads(v, t, kv, e), a, scores, dscores);
  attentionBackward(plainHeads(ndq.data(), s, h, d), plainHeads(ndk.data(), t, kv, d),
                    plainHeads(ndv.data(), t, kv, e), workspace.data(), plainHeads(ndout, s, h, e),
                    plainHeads(nout, s, h, e), lse.data(), plainHeads(nq_, s, h, d),
                    plainHeads(nk_, t, kv, d), plainHeads(nv, t, kv, e), a, nscores, ndscores);
  EXPECT_ROUNDED(ndq, dq);
  EXPECT_ROUNDED(ndk, dk);
  EXPECT_ROUNDED(ndv, dv);
  EXPECT_EQ(ndbias, dbias);
}

TYPED_TEST(HalfMatmuls, Attention) {
  //                batch heads s  keys dim value groups causal scale window
  AttentionCase cases[] = {{{2, 3, 5, 5, 8, 8, 1, true, 0.3f}, false},
                           {{1, 2, 130, 130, 64, 64, 1, true, 0.125f}, false},
                           {{1, 1, 600, 600, 20, 20, 1, true, 0.2f}, false},
                           {{1, 2, 70, 300, 16, 24, 1, false, -0.25f}, false},
                           {{1, 6, 80, 80, 16, 16, 3, true, 0.25f}, false},
                           {{1, 1, 100, 40, 8, 8, 1, true, 0.3f}, false},
                           {{1, 4, 300, 300, 8, 8, 2, true, 0.3f, 100}, false},
                           {{2, 2, 60, 310, 12, 12, 1, false, 0.3f}, true},
                           {{1, 1, 90, 90, 1000, 1000, 1, true, 0.03f}, false},
                           {{1, 1, 1300, 290, 52, 60, 1, false, 0.1f}, false},
                           {withDocuments({2, 2, 300, 300, 8, 8, 2, true, 0.3f}, 60), false},
                           {withDocuments({1, 1, 2900, 2900, 52, 60, 1, true, 0.1f}, 700), false}};
  for (const AttentionCase &c : cases) {
    checkAttention<TypeParam, TypeParam>(c);
    if (c.bias)
      checkAttention<TypeParam, float>(c);
  }
}

/// Calls as in emitted code: heads in braces.
TYPED_TEST(HalfMatmuls, AttentionOfBraces) {
  using T = TypeParam;
  Narrow<T> q = rounded<T>(randomFloats(3 * 8, "q")), out(3 * 8);
  T *at = q.data(), *to = out.data();
  attentionForward({to, 24, 8, 8}, nullptr, {at, 24, 8, 8}, {at, 24, 8, 8}, {at, 24, 8, 8},
                   {1, 1, 3, 3, 8, 8, 1, true, 1.0f});
  EXPECT_EQ(out[0].bits, q[0].bits); // the first query sees only itself
  float bias = 0.5f;
  attentionForward({to, 24, 8, 8}, nullptr, {at, 24, 8, 8}, {at, 24, 8, 8}, {at, 24, 8, 8},
                   {1, 1, 3, 3, 8, 8, 1, true, 1.0f}, {&bias, 0, 0, 0, 0});
  EXPECT_EQ(out[0].bits, q[0].bits);
}

} // namespace
} // namespace partita_rt
