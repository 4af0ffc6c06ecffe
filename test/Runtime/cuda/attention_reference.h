// Attention of unpacked tensors, sum by sum in double, with error bounds for the roundings of
// probabilities.

#ifndef PARTITA_TEST_RUNTIME_CUDA_ATTENTION_REFERENCE_H
#define PARTITA_TEST_RUNTIME_CUDA_ATTENTION_REFERENCE_H

#include "block_layouts.h"
#include "half_reference.h"
#include "partita_rt/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace partita_rt {

/// A result, and for each element the sum of the magnitudes of its terms.
struct Bounded {
  std::vector<double> value, magnitude;
  explicit Bounded(int64_t n = 0) : value(size_t(n)), magnitude(size_t(n)) {}
  void add(int64_t i, double weight, double x) {
    value[size_t(i)] += weight * x;
    magnitude[size_t(i)] += std::fabs(weight * x);
  }
  /// Returns the max distance from `actual` beyond the bound; at most 0 if all are within. Each
  /// weight and the sum may be rounded by `rounding`; float's own errors are `slack` times the
  /// magnitude (1 at least).
  double excess(const Floats &actual, double rounding, double slack) const {
    if (actual.size() != value.size())
      return std::numeric_limits<double>::infinity();
    double most = -1.0;
    for (size_t i = 0; i < value.size(); ++i) {
      double bound = rounding * (magnitude[i] * (1 + rounding) + std::fabs(value[i])) +
                     slack * std::max(1.0, magnitude[i]);
      double distance = std::fabs(actual[i] - value[i]);
      if (std::isnan(distance))
        return std::numeric_limits<double>::infinity();
      most = std::max(most, distance - bound);
    }
    return most;
  }
};

/// Attention without a bias. Tensors are [batch, sequence, heads, dim].
struct AttentionReference {
  AttentionShape a;
  const Floats q, k, v;
  Bounded out;
  std::vector<double> logSumExp; ///< [batch, heads, sequence]
  Floats factors;                ///< of dropout

  AttentionReference(const AttentionShape &shape, const Floats &q, const Floats &k, const Floats &v)
      : a(shape), q(q), k(k), v(v), out(a.batch * a.sequence * a.heads * a.valueDim),
        logSumExp(size_t(a.batch * a.heads * a.sequence)), factors(dropoutFactors(a)) {
    forEachRow([&](int64_t b, int64_t h, int64_t i) {
      std::vector<double> p = probabilities(b, h, i);
      for (int64_t j = 0; j < a.keySequence; ++j)
        for (int64_t d = 0; d < a.valueDim; ++d)
          out.add(atOut(b, i, h, d), p[size_t(j)] * factor(b, h, i, j),
                  this->v[size_t(atV(b, j, h, d))]);
    });
  }
  template <typename Body> void forEachRow(Body body) const {
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t h = 0; h < a.heads; ++h)
        for (int64_t i = 0; i < a.sequence; ++i)
          body(b, h, i);
  }
  double factor(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return factors[size_t(((b * a.heads + h) * a.sequence + i) * a.keySequence + j)];
  }
  int64_t atQ(int64_t b, int64_t i, int64_t h, int64_t d) const {
    return ((b * a.sequence + i) * a.heads + h) * a.headDim + d;
  }
  int64_t atOut(int64_t b, int64_t i, int64_t h, int64_t d) const {
    return ((b * a.sequence + i) * a.heads + h) * a.valueDim + d;
  }
  int64_t atK(int64_t b, int64_t j, int64_t h, int64_t d) const {
    return ((b * a.keySequence + j) * (a.heads / a.groups) + h / a.groups) * a.headDim + d;
  }
  int64_t atV(int64_t b, int64_t j, int64_t h, int64_t d) const {
    return ((b * a.keySequence + j) * (a.heads / a.groups) + h / a.groups) * a.valueDim + d;
  }
  bool seen(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (!inComputedBlock(a, h, i, j) || (a.firstKeys && j < a.firstKeys[b * a.sequence + i]))
      return false;
    int64_t end =
        a.causal ? std::min(i + 1 + a.keySequence - a.sequence, a.keySequence) : a.keySequence;
    return j < end && (a.window == 0 || j >= std::max<int64_t>(end, 0) - a.window);
  }
  /// Returns the probabilities of query i over all keys; zeros if it sees none. Sets logSumExp.
  std::vector<double> probabilities(int64_t b, int64_t h, int64_t i) {
    double none = -std::numeric_limits<double>::infinity(), largest = none, total = 0.0;
    std::vector<double> p(size_t(a.keySequence), none);
    for (int64_t j = 0; j < a.keySequence; ++j)
      if (seen(b, h, i, j)) {
        double sum = 0.0;
        for (int64_t d = 0; d < a.headDim; ++d)
          sum += double(q[size_t(atQ(b, i, h, d))]) * k[size_t(atK(b, j, h, d))];
        p[size_t(j)] = sum * a.scale;
        largest = std::max(largest, p[size_t(j)]);
      }
    for (double &each : p) {
      each = each == none ? 0.0 : std::exp(each - largest);
      total += each;
    }
    for (double &each : p)
      each /= total > 0.0 ? total : 1.0;
    logSumExp[size_t((b * a.heads + h) * a.sequence + i)] = largest + std::log(total);
    return p;
  }
};

/// Gradients, given the forward pass's result `out`.
struct AttentionGradients {
  Bounded dq, dk, dv;
  AttentionGradients(AttentionReference &forward, const Floats &dout, const Floats &out)
      : dq(int64_t(forward.q.size())), dk(int64_t(forward.k.size())),
        dv(int64_t(forward.v.size())) {
    const AttentionShape &a = forward.a;
    forward.forEachRow([&](int64_t b, int64_t h, int64_t i) {
      std::vector<double> p = forward.probabilities(b, h, i);
      double delta = 0.0;
      for (int64_t d = 0; d < a.valueDim; ++d)
        delta += double(dout[size_t(forward.atOut(b, i, h, d))]) *
                 out[size_t(forward.atOut(b, i, h, d))];
      for (int64_t j = 0; j < a.keySequence; ++j) {
        if (p[size_t(j)] == 0.0)
          continue;
        double dp = 0.0;
        for (int64_t d = 0; d < a.valueDim; ++d) {
          double each = dout[size_t(forward.atOut(b, i, h, d))];
          dp += each * forward.v[size_t(forward.atV(b, j, h, d))];
          dv.add(forward.atV(b, j, h, d), p[size_t(j)] * forward.factor(b, h, i, j), each);
        }
        double ds = p[size_t(j)] * (dp * forward.factor(b, h, i, j) - delta) * a.scale;
        for (int64_t d = 0; d < a.headDim; ++d) {
          dq.add(forward.atQ(b, i, h, d), ds, forward.k[size_t(forward.atK(b, j, h, d))]);
          dk.add(forward.atK(b, j, h, d), ds, forward.q[size_t(forward.atQ(b, i, h, d))]);
        }
      }
    });
  }
};

} // namespace partita_rt

#endif // PARTITA_TEST_RUNTIME_CUDA_ATTENTION_REFERENCE_H
