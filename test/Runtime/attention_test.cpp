// Attention against the full matrix of scores in double, forward and backward, in several layouts.

#include "half_reference.h"

#include <utility>

namespace partita_rt {
namespace {

struct Reference {
  Doubles out, dq, dk, dv, logSumExp, dbias;
};

/// Plain [b, s, h, d] tensors. The bias may have no data.
Reference attentionReference(const Floats &q, const Floats &k, const Floats &v, const Floats &dout,
                             const AttentionShape &a, const Floats &bias = {},
                             const ConstScores &strides = {}) {
  int64_t kv = a.heads / a.groups;
  Reference r{Doubles(a.batch * a.sequence * a.heads * a.valueDim),
              Doubles(q.size()),
              Doubles(k.size()),
              Doubles(v.size()),
              Doubles(a.batch * a.heads * a.sequence),
              Doubles(bias.size())};
  Floats factors = dropoutFactors(a);
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < a.sequence; ++i) {
        int64_t seen =
            a.causal
                ? std::max<int64_t>(0, std::min(a.keySequence, i + 1 + a.keySequence - a.sequence))
                : a.keySequence;
        int64_t qRow = ((b * a.sequence + i) * a.heads + h) * a.headDim;
        int64_t oRow = ((b * a.sequence + i) * a.heads + h) * a.valueDim;
        auto kRow = [&](int64_t j) {
          return ((b * a.keySequence + j) * kv + h / a.groups) * a.headDim;
        };
        auto vRow = [&](int64_t j) {
          return ((b * a.keySequence + j) * kv + h / a.groups) * a.valueDim;
        };
        Doubles p(static_cast<size_t>(seen)), dp(static_cast<size_t>(seen));
        double largest = -INFINITY, sum = 0, delta = 0;
        int64_t first = a.window ? std::max<int64_t>(0, seen - a.window) : 0;
        if (a.firstKeys)
          first = std::max<int64_t>(first, a.firstKeys[b * a.sequence + i]);
        auto at = [&](int64_t j) {
          return size_t(b * strides.batchStride + h * strides.headStride + i * strides.rowStride +
                        j * strides.columnStride);
        };
        for (int64_t j = 0; j < seen; ++j) {
          for (int64_t d = 0; d < a.headDim; ++d)
            p[j] += double(q[qRow + d]) * k[kRow(j) + d];
          p[j] = j < first ? -INFINITY : p[j] * a.scale + (bias.empty() ? 0 : bias[at(j)]);
          largest = std::max(largest, p[j]);
        }
        for (double &value : p)
          sum += value = std::exp(value - largest);
        r.logSumExp[(b * a.heads + h) * a.sequence + i] = seen ? largest + std::log(sum) : -1e30;
        const float *kept = factors.data() + ((b * a.heads + h) * a.sequence + i) * a.keySequence;
        for (int64_t j = 0; j < seen; ++j) {
          p[j] /= sum;
          for (int64_t d = 0; d < a.valueDim; ++d) {
            r.out[oRow + d] += p[j] * kept[j] * v[vRow(j) + d];
            r.dv[vRow(j) + d] += p[j] * kept[j] * dout[oRow + d];
            dp[j] += double(dout[oRow + d]) * v[vRow(j) + d] * kept[j];
          }
          delta += p[j] * dp[j];
        }
        for (int64_t j = 0; j < seen; ++j)
          for (int64_t d = 0; d < a.headDim; ++d) {
            double ds = p[j] * (dp[j] - delta) * a.scale;
            r.dq[qRow + d] += ds * k[kRow(j) + d];
            r.dk[kRow(j) + d] += ds * q[qRow + d];
          }
        if (!bias.empty())
          for (int64_t j = 0; j < seen; ++j)
            r.dbias[at(j)] += p[j] * (dp[j] - delta);
      }
  return r;
}

template <typename T> HeadsOf<T> plain(T *data, int64_t sequence, int64_t heads, int64_t dim) {
  return {data, sequence * heads * dim, heads * dim, dim};
}

class Attention : public testing::TestWithParam<AttentionShape> {};

TEST_P(Attention, EqualsTheFullMatrix) {
  AttentionShape a = GetParam();
  int64_t kv = a.heads / a.groups;
  int64_t nq = a.batch * a.sequence * a.heads, nk = a.batch * a.keySequence * kv;
  Floats q = randomFloats(nq * a.headDim, "q"), k = randomFloats(nk * a.headDim, "k"),
         v = randomFloats(nk * a.valueDim, "v"), dout = randomFloats(nq * a.valueDim, "dout");
  Reference r = attentionReference(q, k, v, dout, a);
  Floats out(dout.size(), NAN), lse(r.logSumExp.size()), delta(lse), dq(q.size(), NAN),
      dk(k.size(), NAN), dv(v.size(), NAN);
  auto heads = [&](auto *data, int64_t s, int64_t h, int64_t d) { return plain(data, s, h, d); };
  const float *cq = q.data(), *ck = k.data(), *cv = v.data(), *cdout = dout.data(),
              *cout = out.data();
  ConstHeads Q = heads(cq, a.sequence, a.heads, a.headDim),
             K = heads(ck, a.keySequence, kv, a.headDim),
             V = heads(cv, a.keySequence, kv, a.valueDim);
  attentionForward(heads(out.data(), a.sequence, a.heads, a.valueDim), lse.data(), Q, K, V, a);
  EXPECT_CLOSE(out, r.out, 3e-6);
  for (size_t i = 0; i < lse.size(); ++i) {
    if (r.logSumExp[i] > -1e29) {
      EXPECT_NEAR(lse[i], r.logSumExp[i], 1e-5 * (1 + std::fabs(r.logSumExp[i])));
    }
  }
  attentionBackward(heads(dq.data(), a.sequence, a.heads, a.headDim),
                    heads(dk.data(), a.keySequence, kv, a.headDim),
                    heads(dv.data(), a.keySequence, kv, a.valueDim), delta.data(),
                    heads(cdout, a.sequence, a.heads, a.valueDim),
                    heads(cout, a.sequence, a.heads, a.valueDim), lse.data(), Q, K, V, a);
  EXPECT_CLOSE(dq, r.dq, 1e-5);
  EXPECT_CLOSE(dk, r.dk, 1e-5);
  EXPECT_CLOSE(dv, r.dv, 1e-5);
}

AttentionShape shapeOf(int64_t batch, int64_t heads, int64_t sequence, int64_t keys, int64_t dim,
                       bool causal, int64_t groups = 1, int64_t valueDim = 0, float scale = 0.0f) {
  return {batch,  heads,  sequence,
          keys,   dim,    valueDim ? valueDim : dim,
          groups, causal, scale != 0.0f ? scale : 1.0f / std::sqrt(float(dim))};
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(shapeOf(1, 1, 2, 2, 4, true), shapeOf(2, 3, 5, 5, 8, true),
                    shapeOf(1, 2, 64, 64, 16, true), shapeOf(2, 2, 65, 65, 7, true),
                    shapeOf(1, 2, 130, 130, 64, true), shapeOf(1, 1, 600, 600, 20, true),
                    shapeOf(1, 2, 70, 300, 16, false), shapeOf(1, 1, 33, 333, 12, true),
                    shapeOf(1, 1, 100, 40, 8, true), shapeOf(1, 6, 80, 80, 16, true, 3),
                    shapeOf(1, 2, 50, 50, 16, false, 1, 24),
                    shapeOf(1, 1, 300, 300, 8, true, 1, 0, -0.7f),
                    shapeOf(1, 1, 290, 290, 8, true, 1, 0, 6.0f),
                    withDocuments(shapeOf(2, 2, 70, 70, 8, true), 10),
                    withDocuments(shapeOf(2, 1, 900, 900, 20, true), 200),
                    withDocuments(shapeOf(1, 4, 600, 600, 70, true, 2), 400),
                    withDocuments(shapeOf(1, 1, 300, 300, 8, true, 1, 0, -0.7f), 50),
                    withDocuments(shapeOf(1, 1, 80, 300, 12, true), 40),
                    withDocuments(shapeOf(2, 1, 70, 70, 8, false), 20),
                    withDropout(shapeOf(2, 3, 65, 65, 8, true), 0.1),
                    withDropout(shapeOf(1, 4, 100, 391, 16, false, 2, 24), 0.5),
                    withDropout(withDocuments(shapeOf(2, 1, 600, 600, 20, true), 200), 0.3),
                    withDropout(shapeOf(1, 1, 20, 20, 8, true), 1.0)));

/// The dimensions of [batch, heads, sequence, keys] that a bias has, and its contents.
struct BiasCase {
  AttentionShape shape;
  bool batch, heads, rows, columns;
  enum { Random, Padding, Hidden } kind = Random; // Hidden: one batch element sees no key
};

class BiasedAttention : public testing::TestWithParam<BiasCase> {};

TEST_P(BiasedAttention, EqualsTheFullMatrix) {
  const BiasCase &c = GetParam();
  const AttentionShape &a = c.shape;
  int64_t kv = a.heads / a.groups, size = 1;
  auto stride = [&](bool has, int64_t n) { return has ? std::exchange(size, size * n) : 0; };
  ConstScores bias;
  bias.columnStride = stride(c.columns, a.keySequence);
  bias.rowStride = stride(c.rows, a.sequence);
  bias.headStride = stride(c.heads, a.heads);
  bias.batchStride = stride(c.batch, a.batch);
  Floats values = randomFloats(size, "bias"), dbias(values.size(), NAN);
  if (c.kind != BiasCase::Random)
    for (int64_t i = 0; i < size; ++i) {
      bool padding = c.kind == BiasCase::Hidden ? i < a.keySequence : i % 3 == 1;
      values[size_t(i)] = padding ? std::numeric_limits<float>::lowest() : 0.0f;
    }
  bias.data = values.data();
  int64_t nq = a.batch * a.sequence * a.heads, nk = a.batch * a.keySequence * kv;
  Floats q = randomFloats(nq * a.headDim, "q"), k = randomFloats(nk * a.headDim, "k"),
         v = randomFloats(nk * a.valueDim, "v"), dout = randomFloats(nq * a.valueDim, "dout");
  Reference r = attentionReference(q, k, v, dout, a, values, bias);
  Floats out(dout.size(), NAN), lse(r.logSumExp.size()), delta(lse), dq(q.size(), NAN),
      dk(k.size(), NAN), dv(v.size(), NAN);
  const float *cq = q.data(), *ck = k.data(), *cv = v.data(), *cdout = dout.data(),
              *cout = out.data();
  ConstHeads Q = plain(cq, a.sequence, a.heads, a.headDim),
             K = plain(ck, a.keySequence, kv, a.headDim),
             V = plain(cv, a.keySequence, kv, a.valueDim);
  attentionForward(plain(out.data(), a.sequence, a.heads, a.valueDim), lse.data(), Q, K, V, a,
                   bias);
  EXPECT_CLOSE(out, r.out, 3e-6);
  attentionBackward(
      plain(dq.data(), a.sequence, a.heads, a.headDim),
      plain(dk.data(), a.keySequence, kv, a.headDim),
      plain(dv.data(), a.keySequence, kv, a.valueDim), delta.data(),
      plain(cdout, a.sequence, a.heads, a.valueDim), plain(cout, a.sequence, a.heads, a.valueDim),
      lse.data(), Q, K, V, a, bias,
      {dbias.data(), bias.batchStride, bias.headStride, bias.rowStride, bias.columnStride});
  EXPECT_CLOSE(dq, r.dq, 1e-5);
  EXPECT_CLOSE(dk, r.dk, 1e-5);
  EXPECT_CLOSE(dv, r.dv, 1e-5);
  if (c.kind == BiasCase::Random)
    EXPECT_CLOSE(dbias, r.dbias, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BiasedAttention,
    testing::Values(
        BiasCase{shapeOf(2, 2, 50, 70, 8, false), true, true, true, true},
        BiasCase{shapeOf(2, 4, 65, 65, 8, true, 2), false, true, true, true},
        BiasCase{shapeOf(2, 2, 33, 300, 8, false), true, false, false, true},
        BiasCase{shapeOf(1, 2, 300, 300, 8, true), false, true, false, true},
        BiasCase{withDocuments(shapeOf(2, 2, 300, 300, 8, true), 90), false, true, true, true},
        BiasCase{shapeOf(2, 2, 40, 40, 8, false), true, false, false, true, BiasCase::Padding},
        BiasCase{shapeOf(2, 2, 40, 300, 8, false), true, false, false, true, BiasCase::Hidden},
        BiasCase{shapeOf(2, 2, 40, 40, 8, true), true, false, false, true, BiasCase::Hidden}));

TEST(Attention, SeesAWindow) {
  for (int64_t window : {1, 3, 40, 300}) {
    AttentionShape a = shapeOf(1, 2, 600, 600, 8, true);
    a.window = window;
    if (window == 40) // with documents of about as many positions
      a = withDocuments(a, window);
    int64_t n = 600 * 2 * 8;
    Floats q = randomFloats(n, "q"), k = randomFloats(n, "k"), v = randomFloats(n, "v"),
           dout = randomFloats(n, "dout");
    Reference r = attentionReference(q, k, v, dout, a);
    Floats out(q.size()), lse(1200), delta(lse), dq(q.size()), dk(q.size()), dv(q.size());
    const float *cq = q.data(), *ck = k.data(), *cv = v.data(), *cd = dout.data(), *co = out.data();
    attentionForward(plain(out.data(), 600, 2, 8), lse.data(), plain(cq, 600, 2, 8),
                     plain(ck, 600, 2, 8), plain(cv, 600, 2, 8), a);
    EXPECT_CLOSE(out, r.out, 3e-6);
    attentionBackward(plain(dq.data(), 600, 2, 8), plain(dk.data(), 600, 2, 8),
                      plain(dv.data(), 600, 2, 8), delta.data(), plain(cd, 600, 2, 8),
                      plain(co, 600, 2, 8), lse.data(), plain(cq, 600, 2, 8), plain(ck, 600, 2, 8),
                      plain(cv, 600, 2, 8), a);
    if (window > 1) // a softmax of one key is constant
      EXPECT_CLOSE(dq, r.dq, 1e-5);
    EXPECT_CLOSE(dv, r.dv, 1e-5);
  }
}

TEST(Attention, QueriesThatSeeNothingAreNotANumberOrZero) {
  AttentionShape a = shapeOf(1, 1, 2, 3, 4, false);
  Floats q = randomFloats(8, "q"), k = randomFloats(12, "k"), v = randomFloats(12, "v"), out(8),
         lse(2);
  Floats bias(6, 0.0f);
  std::fill(bias.begin(), bias.begin() + 3, -std::numeric_limits<float>::infinity());
  const float *cq = q.data(), *ck = k.data(), *cv = v.data();
  for (bool zero : {false, true}) {
    a.zeroHidden = zero;
    attentionForward(plain(out.data(), 2, 1, 4), lse.data(), plain(cq, 2, 1, 4), plain(ck, 3, 1, 4),
                     plain(cv, 3, 1, 4), a, {bias.data(), 0, 0, 3, 1});
    EXPECT_EQ(std::isnan(out[0]), !zero);
    EXPECT_EQ(out[3] == 0.0f, zero);
    EXPECT_FALSE(std::isnan(out[4]));
  }
}

/// Keys and values of the first document are not a number: 0 times one would be none either.
TEST(Documents, TilesOfOthersAreNotRead) {
  AttentionShape a = shapeOf(1, 1, 1536, 1536, 16, true);
  std::vector<int32_t> firsts(1536, 0);
  std::fill(firsts.begin() + 768, firsts.end(), 768);
  a.firstKeys = firsts.data();
  Floats q = randomFloats(1536 * 16, "q"), k = randomFloats(1536 * 16, "k"), v(k), dout(q);
  auto run = [&](Floats &out, Floats &dq, Floats &dk) {
    Floats lse(1536), workspace(1536), dv(k.size());
    auto in = [](const Floats &x) { return plain(x.data(), 1536, 1, 16); };
    auto to = [](Floats &x) { return plain(x.data(), 1536, 1, 16); };
    attentionForward(to(out), lse.data(), in(q), in(k), in(v), a);
    attentionBackward(to(dq), to(dk), to(dv), workspace.data(), in(dout), in(out), lse.data(),
                      in(q), in(k), in(v), a);
    dk.insert(dk.end(), dv.begin(), dv.end());
  };
  Floats out(q.size()), dq(q.size()), dk(q.size()), clean[3] = {out, dq, dk};
  run(clean[0], clean[1], clean[2]);
  std::fill_n(k.begin(), 768 * 16, NAN);
  std::fill_n(v.begin(), 768 * 16, NAN);
  run(out, dq, dk);
  EXPECT_TRUE(std::isnan(out[0]));
  for (size_t i = 768 * 16; i < 1536 * 16; ++i) {
    ASSERT_EQ(out[i], clean[0][i]);
    ASSERT_EQ(dq[i], clean[1][i]);
    ASSERT_EQ(dk[i], clean[2][i]);
    ASSERT_EQ(dk[1536 * 16 + i], clean[2][1536 * 16 + i]); // dv
  }
}

TEST(Documents, StartBehindAToken) {
  std::vector<int64_t> ids{9, 1, 2, 9, 9, 1, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int32_t> starts(16, -1), wanted{0, 1, 1, 1, 4, 5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0};
  documentStartsAfter(9, starts.data(), ids.data(), 2, 8);
  EXPECT_EQ(starts, wanted);
  std::vector<int32_t> narrow(ids.begin(), ids.end()), again(16, -1);
  documentStartsAfter(9, again.data(), narrow.data(), 2, 8);
  EXPECT_EQ(again, wanted);
}

TEST(Documents, StartWhereTheIdChanges) {
  std::vector<int64_t> ids{7, 7, 2, 2, 2, 9, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  std::vector<int32_t> starts(16, -1), wanted{0, 0, 2, 2, 2, 5, 6, 6, 0, 0, 0, 0, 0, 0, 0, 0};
  documentStarts(starts.data(), ids.data(), 2, 8);
  EXPECT_EQ(starts, wanted);
  std::vector<int32_t> narrow(ids.begin(), ids.end()), again(16, -1);
  documentStarts(again.data(), narrow.data(), 2, 8);
  EXPECT_EQ(again, wanted);
  ids[14] = 0;
  EXPECT_EQ(errorOf([&] { documentStarts(starts.data(), ids.data(), 2, 8); }),
            "documents: id 1 of sequence 1 comes back at position 7, after another document; "
            "compile with --recurring-documents if that is meant");
}

TEST(RotateHalf, TurnsPairs) {
  Floats x{1, 2, 3, 4, 5, 6, 7, 8}, y(8);
  rotateHalf(y.data(), x.data(), 2, 4, Pairs::Halves);
  EXPECT_EQ(y, (Floats{-3, -4, 1, 2, -7, -8, 5, 6}));
  rotateHalf(y.data(), x.data(), 2, 4, Pairs::Interleaved);
  EXPECT_EQ(y, (Floats{-2, 1, -4, 3, -6, 5, -8, 7}));
}

/// Computes x cos + turned(x) sin in double, by the definition; `back`: the transpose, element by
/// element.
Floats rotaryOf(const Floats &x, const Floats &cos, const Floats &sin, int64_t width, Pairs pairs,
                Turn turn) {
  Floats y(x.size());
  for (size_t row = 0; row < x.size(); row += size_t(width))
    for (int64_t i = 0; i < width; ++i) {
      bool halves = pairs == Pairs::Halves, second = halves ? i >= width / 2 : i % 2 != 0;
      int64_t apart = halves ? width / 2 : 1, other = second ? i - apart : i + apart;
      size_t at = row + size_t(i), to = row + size_t(other);
      double sine = turn == Turn::Forth ? sin[at] : sin[to];
      bool minus = second == (turn == Turn::Back);
      y[at] = float(double(x[at]) * cos[at] + (minus ? -1 : 1) * double(x[to]) * sine);
    }
  return y;
}

TEST(Rotary, TurnsPairsByTheirAngles) {
  constexpr int64_t b = 2, s = 3, h = 4, d = 6;
  Floats x = randomFloats(b * s * h * d, "x"), angles = randomFloats(2 * s * d, "angles");
  Floats cos(x.size()), sin(x.size()), y(x.size());
  for (int64_t i = 0; i < b * s * h * d; ++i) { // angles [s, d] of x [b, s, h, d]
    int64_t at = i / (h * d) % s * d + i % d;
    cos[i] = angles[at];
    sin[i] = angles[s * d + at];
  }
  Shape dense{s * h * d, h * d, d, 1}, perPosition{0, d, 0, 1}, shape{b, s, h, d};
  for (Pairs pairs : {Pairs::Halves, Pairs::Interleaved})
    for (Turn turn : {Turn::Forth, Turn::Back}) {
      rotary(y.data(), dense, x.data(), dense, angles.data(), perPosition, angles.data() + s * d,
             perPosition, shape, pairs, turn);
      Floats expected = rotaryOf(x, cos, sin, d, pairs, turn);
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(y[i], expected[i], 1e-6);
      // From a packed tensor, into another order, and in place.
      Floats packed(b * s * 2 * h * d), turned(x.size()), same = x;
      for (int64_t i = 0; i < b * s; ++i)
        std::copy_n(x.data() + i * h * d, h * d, packed.data() + i * 2 * h * d + h * d);
      rotary(turned.data(), {s * h * d, d, s * d, 1}, packed.data() + h * d,
             {2 * s * h * d, 2 * h * d, d, 1}, angles.data(), perPosition, angles.data() + s * d,
             perPosition, shape, pairs, turn);
      for (int64_t i = 0; i < b * s * h * d; ++i) {
        int64_t batch = i / (s * h * d), row = i / (h * d) % s, head = i / d % h;
        EXPECT_EQ(turned[batch * s * h * d + head * s * d + row * d + i % d], y[i]);
      }
      rotary(same.data(), dense, same.data(), dense, angles.data(), perPosition,
             angles.data() + s * d, perPosition, shape, pairs, turn);
      EXPECT_EQ(same, y);
    }
}

TEST(Repeat, RepeatsWhatAShardHolds) {
  Floats x{1, 2, 3, 4, 5, 6, 7, 8}, y(8); // [2, 2, 2], each index 3 times: a shard of 2 of 6
  repeat(y.data(), x.data(), 2, 2, 3, Indices{2, 2}, 2);
  EXPECT_EQ(y, (Floats{1, 2, 3, 4, 5, 6, 7, 8}));
  repeat(y.data(), x.data(), 2, 2, 3, Indices{0, 2}, 2);
  EXPECT_EQ(y, (Floats{1, 2, 1, 2, 5, 6, 5, 6}));
  Floats dx(8, NAN);
  repeatSum(dx.data(), y.data(), 2, 2, 3, Indices{0, 2}, 2);
  EXPECT_EQ(dx, (Floats{2, 4, 0, 0, 10, 12, 0, 0}));
}

TEST(Attention, ReadsAndWritesPackedProjections) {
  AttentionShape a = shapeOf(2, 3, 37, 37, 8, true);
  int64_t h = 3 * 8, rows = 2 * 37;
  Floats qkv = randomFloats(rows * 3 * h, "qkv"), dout = randomFloats(rows * h, "dout");
  Floats part[3], dpart[3];
  for (int i = 0; i < 3; ++i) {
    part[i].resize(rows * h);
    dpart[i].resize(rows * h);
    copyRows(part[i].data(), h, qkv.data() + i * h, 3 * h, rows, h);
  }
  Floats out(rows * h), outPacked(rows * h), lse(2 * 3 * 37), delta(lse), dqkv(qkv.size(), NAN);
  auto separate = [&](auto *data) { return plain(data, 37, 3, 8); };
  auto packed = [&](auto *data, int i) {
    return HeadsOf<std::remove_pointer_t<decltype(data)>>{data + i * h, 37 * 3 * h, 3 * h, 8};
  };
  const float *q = part[0].data(), *k = part[1].data(), *v = part[2].data(), *all = qkv.data();
  const float *o = out.data(), *g = dout.data();
  attentionForward(separate(out.data()), lse.data(), separate(q), separate(k), separate(v), a);
  attentionForward(separate(outPacked.data()), lse.data(), packed(all, 0), packed(all, 1),
                   packed(all, 2), a);
  EXPECT_EQ(out, outPacked);
  attentionBackward(separate(dpart[0].data()), separate(dpart[1].data()), separate(dpart[2].data()),
                    delta.data(), separate(g), separate(o), lse.data(), separate(q), separate(k),
                    separate(v), a);
  attentionBackward(packed(dqkv.data(), 0), packed(dqkv.data(), 1), packed(dqkv.data(), 2),
                    delta.data(), separate(g), separate(o), lse.data(), packed(all, 0),
                    packed(all, 1), packed(all, 2), a);
  for (int i = 0; i < 3; ++i) {
    Floats unpacked(rows * h);
    copyRows(unpacked.data(), h, dqkv.data() + i * h, 3 * h, rows, h);
    EXPECT_EQ(unpacked, dpart[i]);
  }
}

/// [batch, positions, heads, dim], or with heads before positions.
template <typename T>
HeadsOf<T> inLayout(T *data, bool headsFirst, int64_t s, int64_t h, int64_t d) {
  if (headsFirst)
    return {data, h * s * d, d, s * d};
  return plain(data, s, h, d);
}

/// T: of q, k and v; Y: of the sums.
template <typename T, typename Y> void checkRowSums(const AttentionShape &a, bool headsFirst) {
  int64_t kv = a.heads / a.groups, nq = a.batch * a.sequence, nk = a.batch * a.keySequence;
  std::vector<T> q = rounded<T>(randomFloats(nq * a.heads * a.headDim, "q")),
                 k = rounded<T>(randomFloats(nk * kv * a.headDim, "k")),
                 v = rounded<T>(randomFloats(nk * kv * a.valueDim, "v")),
                 dout = rounded<T>(randomFloats(nq * a.heads * a.valueDim, "dout")), out(dout),
                 dq(q), dk(k), dv(v);
  Floats lse(size_t(nq * a.heads)), workspace(size_t(attentionWorkspace(a, kDTypeOf<T>)));
  std::vector<Y> dqSums(size_t(a.heads * a.headDim)), dvSums(size_t(kv * a.valueDim));
  auto ofQ = [&](auto *x, int64_t d) { return inLayout(x, headsFirst, a.sequence, a.heads, d); };
  auto ofK = [&](auto *x, int64_t d) { return inLayout(x, headsFirst, a.keySequence, kv, d); };
  const T *cq = q.data(), *ck = k.data(), *cv = v.data(), *cdout = dout.data(), *cout = out.data();
  attentionForward(ofQ(out.data(), a.valueDim), lse.data(), ofQ(cq, a.headDim), ofK(ck, a.headDim),
                   ofK(cv, a.valueDim), a);
  attentionBackward(ofQ(dq.data(), a.headDim), ofK(dk.data(), a.headDim),
                    ofK(dv.data(), a.valueDim), workspace.data(), ofQ(cdout, a.valueDim),
                    ofQ(cout, a.valueDim), lse.data(), ofQ(cq, a.headDim), ofK(ck, a.headDim),
                    ofK(cv, a.valueDim), a, {}, {}, {dqSums.data(), nullptr, dvSums.data()});
  auto check = [&](const std::vector<Y> &sums, const HeadsOf<T> &x, int64_t s, int64_t h,
                   int64_t d) {
    std::vector<T> rows(size_t(a.batch * s * h * d)); // [batch, positions, heads, dim]
    for (int64_t i = 0; i < int64_t(rows.size()); ++i)
      rows[size_t(i)] = x.data[i / (s * h * d) * x.batchStride + i / (h * d) % s * x.rowStride +
                               i / d % h * x.headStride + i % d];
    std::vector<Y> wanted(sums.size());
    columnSum(wanted.data(), static_cast<const T *>(rows.data()), a.batch * s, h * d, h * d);
    for (size_t i = 0; i < wanted.size(); ++i)
      if (headsFirst) // in another order: sequence by sequence
        EXPECT_NEAR(float(sums[i]), float(wanted[i]),
                    (sizeof(Y) == 4 ? 1e-5 : 0.02) * (1 + std::fabs(float(wanted[i]))));
      else
        EXPECT_EQ(float(sums[i]), float(wanted[i])) << i;
  };
  check(dqSums, ofQ(dq.data(), a.headDim), a.sequence, a.heads, a.headDim);
  check(dvSums, ofK(dv.data(), a.valueDim), a.keySequence, kv, a.valueDim);
}

TEST(Attention, SumsOfRowsAreColumnSums) {
  for (const AttentionShape &a :
       {shapeOf(2, 4, 70, 70, 12, true, 2), shapeOf(3, 2, 9, 33, 8, false, 1, 20)})
    for (bool headsFirst : {false, true}) {
      checkRowSums<float, float>(a, headsFirst);
      checkRowSums<BFloat16, BFloat16>(a, headsFirst);
      checkRowSums<BFloat16, float>(a, headsFirst);
    }
}

} // namespace
} // namespace partita_rt
