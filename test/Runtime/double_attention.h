// Attention against the full matrix of scores in double precision, forward and backward.

#ifndef PARTITA_TEST_RUNTIME_DOUBLE_ATTENTION_H
#define PARTITA_TEST_RUNTIME_DOUBLE_ATTENTION_H

#include "block_layouts.h"

namespace partita_rt {

/// One attention over the full sequences, sum by sum in double. Operands: `a`, the shape; q, k, v, dout, and bias,
/// empty or with atBias(b, h, i, j) as the index of an element; kv, the number of key heads; nq, that of queries.
template <typename Operands> struct DoubleAttention {
  Doubles out, dq, dk, dv, logSumExp, dbias;

  explicit DoubleAttention(const Operands &o)
      : out(o.dout.size()), dq(o.q.size()), dk(o.k.size()), dv(o.v.size()), logSumExp(size_t(o.nq)),
        dbias(o.bias.size()), factors(dropoutFactors(o.a)) {
    for (int64_t b = 0; b < o.a.batch; ++b)
      for (int64_t h = 0; h < o.a.heads; ++h)
        for (int64_t i = 0; i < o.a.sequence; ++i)
          addRow(o, b, h, i);
  }

private:
  Floats factors; ///< of dropout

  static bool sees(const AttentionShape &a, int64_t b, int64_t h, int64_t i, int64_t j) {
    int64_t end = a.causal ? i + 1 + a.keySequence - a.sequence : a.keySequence;
    return j < end && (!a.window || j >= end - a.window) &&
           (!a.firstKeys || j >= a.firstKeys[b * a.sequence + i]) && inComputedBlock(a, h, i, j);
  }
  void addRow(const Operands &o, int64_t b, int64_t h, int64_t i) {
    const AttentionShape &a = o.a;
    int64_t row = (b * a.sequence + i) * a.heads + h, lse = (b * a.heads + h) * a.sequence + i;
    auto keyRow = [&](int64_t j) { return (b * a.keySequence + j) * o.kv + h / a.groups; };
    std::vector<int64_t> seen;
    Doubles p, dp;
    double largest = -INFINITY, sum = 0, delta = 0;
    for (int64_t j = 0; j < a.keySequence; ++j) {
      if (!sees(a, b, h, i, j))
        continue;
      double score = 0;
      for (int64_t d = 0; d < a.headDim; ++d)
        score += double(o.q[size_t(row * a.headDim + d)]) * o.k[size_t(keyRow(j) * a.headDim + d)];
      score = score * a.scale + (o.bias.empty() ? 0.0f : o.bias[o.atBias(b, h, i, j)]);
      if (score == -INFINITY)
        continue;
      seen.push_back(j);
      p.push_back(score);
      largest = std::max(largest, score);
    }
    for (double &each : p)
      sum += each = std::exp(each - largest);
    logSumExp[size_t(lse)] = largest + std::log(sum);
    for (size_t n = 0; n < seen.size(); ++n) {
      double factor = factors[size_t(lse * a.keySequence + seen[n])], gradient = 0;
      p[n] /= sum;
      for (int64_t d = 0; d < a.valueDim; ++d) {
        double value = o.v[size_t(keyRow(seen[n]) * a.valueDim + d)];
        double each = o.dout[size_t(row * a.valueDim + d)];
        out[size_t(row * a.valueDim + d)] += p[n] * factor * value;
        dv[size_t(keyRow(seen[n]) * a.valueDim + d)] += p[n] * factor * each;
        gradient += each * value * factor;
      }
      dp.push_back(gradient);
      delta += p[n] * gradient;
    }
    for (size_t n = 0; n < seen.size(); ++n) {
      double ds = p[n] * (dp[n] - delta);
      if (!o.bias.empty())
        dbias[o.atBias(b, h, i, seen[n])] += ds;
      for (int64_t d = 0; d < a.headDim; ++d) {
        int64_t key = keyRow(seen[n]) * a.headDim + d;
        dq[size_t(row * a.headDim + d)] += ds * a.scale * o.k[size_t(key)];
        dk[size_t(key)] += ds * a.scale * o.q[size_t(row * a.headDim + d)];
      }
    }
  }
};

} // namespace partita_rt

#endif // PARTITA_TEST_RUNTIME_DOUBLE_ATTENTION_H
