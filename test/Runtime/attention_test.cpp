// Attention against the whole matrix of scores in double, forward and backward, in several layouts.

#include "reference.h"

namespace partita_rt {
namespace {

struct Reference {
  Doubles out, dq, dk, dv, logSumExp;
};

/// Plain [b, s, h, d] tensors.
Reference attentionReference(const Floats &q, const Floats &k, const Floats &v, const Floats &dout,
                             const AttentionShape &a) {
  int64_t kv = a.heads / a.groups;
  Reference r{Doubles(a.batch * a.sequence * a.heads * a.valueDim), Doubles(q.size()),
              Doubles(k.size()), Doubles(v.size()), Doubles(a.batch * a.heads * a.sequence)};
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
        for (int64_t j = 0; j < seen; ++j) {
          for (int64_t d = 0; d < a.headDim; ++d)
            p[j] += double(q[qRow + d]) * k[kRow(j) + d];
          p[j] *= a.scale;
          largest = std::max(largest, p[j]);
        }
        for (double &value : p)
          sum += value = std::exp(value - largest);
        r.logSumExp[(b * a.heads + h) * a.sequence + i] = seen ? largest + std::log(sum) : -1e30;
        for (int64_t j = 0; j < seen; ++j) {
          p[j] /= sum;
          for (int64_t d = 0; d < a.valueDim; ++d) {
            r.out[oRow + d] += p[j] * v[vRow(j) + d];
            r.dv[vRow(j) + d] += p[j] * dout[oRow + d];
            dp[j] += double(dout[oRow + d]) * v[vRow(j) + d];
          }
          delta += p[j] * dp[j];
        }
        for (int64_t j = 0; j < seen; ++j)
          for (int64_t d = 0; d < a.headDim; ++d) {
            double ds = p[j] * (dp[j] - delta) * a.scale;
            r.dq[qRow + d] += ds * k[kRow(j) + d];
            r.dk[kRow(j) + d] += ds * q[qRow + d];
          }
      }
  return r;
}

template <typename T> HeadsOf<T> plain(T *data, int64_t sequence, int64_t heads, int64_t dim) {
  return {data, sequence * heads * dim, heads * dim, dim};
}

class Attention : public testing::TestWithParam<AttentionShape> {};

TEST_P(Attention, EqualsTheWholeMatrix) {
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
                    shapeOf(1, 1, 290, 290, 8, true, 1, 0, 6.0f)));

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

} // namespace
} // namespace partita_rt
