//===- AttentionMath.h - what the kernels of attention share ------------------------*- C++ -*-===//
//
// One batch element and head at a time, with the whole matrix of probabilities: scores, masks, softmax,
// dropout, gradients, for queries and keys at any positions of the full sequences.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_INTERP_ATTENTIONMATH_H
#define PARTITA_LIB_INTERP_ATTENTIONMATH_H

#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"
#include "partita/Interp/Random.h"
#include "runtime/include/partita_rt/attention_base.h"
#include <numeric>

namespace partita::interp::attention {
using namespace mlir;

/// Row-major [rows, columns].
struct Matrix {
  int64_t rows, columns;
  std::vector<double> data;
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), data(rows * columns, 0.0) {}
  double &at(int64_t i, int64_t j) { return data[i * columns + j]; }
  double at(int64_t i, int64_t j) const { return data[i * columns + j]; }
  /// Element by element.
  void scaleBy(const Matrix &factors) {
    for (auto [element, factor] : llvm::zip_equal(data, factors.data))
      element *= factor;
  }
};

inline Matrix operator*(const Matrix &a, const Matrix &b) {
  Matrix c(a.rows, b.columns);
  multiplyAdd(a.data.data(), b.data.data(), c.data.data(), a.rows, a.columns, b.columns);
  return c;
}

inline Matrix turned(const Matrix &a) {
  Matrix result(a.columns, a.rows);
  result.data = transposed(a.data.data(), a.rows, a.columns);
  return result;
}

/// The dot product of two matrices' rows i.
inline double rowDot(const Matrix &a, const Matrix &b, int64_t i) {
  double dot = 0;
  for (int64_t j = 0; j < a.columns; ++j)
    dot += a.at(i, j) * b.at(i, j);
  return dot;
}

/// Where element [b, i, h, 0] of a tensor [b, s, h, d] stands.
inline int64_t position(const Tensor &tensor, int64_t b, int64_t i, int64_t h) {
  return ((b * tensor.shape[1] + i) * tensor.shape[2] + h) * tensor.shape[3];
}

/// tensor[b, :, h, :].
inline Matrix headOf(const Tensor &tensor, int64_t b, int64_t h) {
  Matrix result(tensor.shape[1], tensor.shape[3]);
  for (int64_t i = 0; i < result.rows; ++i)
    std::copy_n(tensor.reals.begin() + position(tensor, b, i, h), result.columns,
                &result.data[i * result.columns]);
  return result;
}

inline void addHead(Tensor &tensor, int64_t b, int64_t h, const Matrix &head, double scale = 1) {
  for (int64_t i = 0; i < head.rows; ++i)
    for (int64_t j = 0; j < head.columns; ++j)
      tensor.reals[position(tensor, b, i, h) + j] += scale * head.at(i, j);
}

/// The optional operands; null where there is none.
struct Extras {
  const Tensor *bias = nullptr, *firstKeys = nullptr, *firstHead = nullptr, *key = nullptr,
               *micro = nullptr, *first = nullptr;
  template <typename Op> Extras(Op op, Inputs in) {
    auto of = [&](Value operand) -> const Tensor * {
      for (auto [value, tensor] : llvm::zip(op->getOperands(), in))
        if (operand && value == operand)
          return tensor;
      return nullptr;
    };
    bias = of(op.getBias());
    firstKeys = of(op.getFirstKeys());
    key = of(op.getKey());
    micro = of(op.getMicro());
    first = of(op.getFirst());
    firstHead = of(op.getFirstHead());
  }
};

/// Where queries and keys stand in the full sequences, which have s and t positions.
struct Positions {
  std::vector<int64_t> queries, keys;
  int64_t s = 0, t = 0;

  /// All of them.
  static Positions full(const Tensor &q, const Tensor &k) {
    Positions all;
    all.s = q.shape[1];
    all.t = k.shape[1];
    all.queries = run(0, all.s);
    all.keys = run(0, all.t);
    return all;
  }
  static std::vector<int64_t> run(int64_t first, int64_t count) {
    std::vector<int64_t> result(count);
    std::iota(result.begin(), result.end(), first);
    return result;
  }
  /// `count` positions in as many runs as `first` has numbers, each with the number of its first one.
  static std::vector<int64_t> runs(const Tensor &first, int64_t count) {
    std::vector<int64_t> result;
    for (int64_t i = 0, n = count / first.size(); i < count; ++i)
      result.push_back(first.ints[i / n] + i % n);
    return result;
  }
};

/// The query at position i sees keys [first, end).
struct Visible {
  int64_t first, end;
};
/// Query number `row` of this rank, of batch element b.
template <typename Op>
Visible visible(Op op, const Tensor *firstKeys, const Positions &at, int64_t b, size_t row) {
  int64_t i = at.queries[row];
  int64_t end = op.getCausal() ? std::clamp<int64_t>(i + 1 + at.t - at.s, 0, at.t) : at.t;
  int64_t first = firstKeys ? firstKeys->ints[b * int64_t(at.queries.size()) + int64_t(row)] : 0;
  return {op.getWindow() ? std::max(first, end - static_cast<int64_t>(*op.getWindow())) : first,
          end};
}

/// Where element [b, h, i, j] of a bias stands that may have dimensions of size one.
inline int64_t biasPosition(const Tensor &bias, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t index[] = {b, h, i, j};
  int64_t position = 0;
  for (unsigned d = 0; d < 4; ++d)
    position = position * bias.shape[d] + (bias.shape[d] == 1 ? 0 : index[d]);
  return position;
}

/// The head of k and v that query head h reads.
inline int64_t keyHead(const Tensor &q, const Tensor &k, int64_t h) {
  return h / (q.shape[2] / k.shape[2]);
}

/// Which keys query i of a head sees, whatever its position in a document.
class VisibleBlocks {
public:
  /// h: the head of this rank; s: the length of the full sequence.
  template <typename Op> VisibleBlocks(Op op, const Extras &extras, int64_t h, int64_t s) {
    tx::BlocksAttr blocks = op.getBlocksAttr();
    if (!blocks)
      return;
    size = blocks.getSize();
    pattern = blocks.patternOf(h + (extras.firstHead ? extras.firstHead->ints[0] : 0));
    layout = pattern.rows(size, s / size);
  }
  bool sees(int64_t i, int64_t j) const {
    return !pattern ||
           isComputed(layout, static_cast<int32_t>(i / size), static_cast<int32_t>(j / size));
  }

private:
  tx::BlockPatternAttr pattern;
  partita_rt::BlockLayout layout{};
  int64_t size = 1;
};

/// scale q k^T + bias - base of one batch element and head, and which of them a query sees. A bias has rows for these
/// queries, and columns for all positions of keys; the base is that of all keys (attention_base.h).
struct Scores {
  Matrix values;
  std::vector<char> seen;
  bool sees(int64_t i, int64_t j) const { return seen[i * values.columns + j]; }
  double largest(int64_t i) const {
    double max = -INFINITY;
    for (int64_t j = 0; j < values.columns; ++j)
      if (sees(i, j))
        max = std::max(max, values.at(i, j));
    return max;
  }
};
template <typename Op>
Scores scoresOf(Op op, const Tensor &qs, const Tensor &ks, const Extras &extras,
                const Positions &at, int64_t b, int64_t h) {
  const Tensor *bias = extras.bias;
  Scores scores{headOf(qs, b, h) * turned(headOf(ks, b, keyHead(qs, ks, h))), {}};
  Matrix &p = scores.values;
  scores.seen.resize(p.data.size());
  VisibleBlocks blocks(op, extras, h, at.s);
  double scale = op.getScale().convertToDouble();
  for (int64_t i = 0; i < p.rows; ++i) {
    auto [first, end] = visible(op, extras.firstKeys, at, b, i);
    auto biasOf = [&, row = i](int64_t key) {
      return bias ? bias->reals[biasPosition(*bias, b, h, row, key)] : 0;
    };
    double largest = -INFINITY;
    for (int64_t key = first; key < end && largest < partita_rt::kLowBias; ++key)
      if (blocks.sees(at.queries[i], key))
        largest = std::max(largest, biasOf(key));
    double base = partita_rt::baseOf(largest);
    for (int64_t j = 0; j < p.columns; ++j) {
      int64_t key = at.keys[j];
      if (key < first || key >= end || !blocks.sees(at.queries[i], key))
        continue;
      scores.seen[i * p.columns + j] = 1;
      p.at(i, j) = p.at(i, j) * scale + biasOf(key) - base;
    }
  }
  return scores;
}

/// softmax of the scores, zero where a query does not see the key; lse gets the rows' log of the denominator.
template <typename Op>
Matrix probabilities(Op op, const Tensor &qs, const Tensor &ks, const Extras &extras,
                     const Positions &at, int64_t b, int64_t h, double *lse) {
  Scores scores = scoresOf(op, qs, ks, extras, at, b, h);
  Matrix &p = scores.values;
  for (int64_t i = 0; i < p.rows; ++i) {
    double largest = scores.largest(i), sum = 0;
    bool hidden = op.getZeroHidden() && largest == -INFINITY;
    for (int64_t j = 0; j < p.columns; ++j)
      if (scores.sees(i, j))
        sum += p.at(i, j) = std::exp(p.at(i, j) - largest);
    for (int64_t j = 0; j < p.columns; ++j)
      p.at(i, j) = scores.sees(i, j) && !hidden ? p.at(i, j) / sum : 0;
    if (lse)
      lse[i] = hidden ? -INFINITY : largest + std::log(sum);
  }
  return p;
}

/// What dropout multiplies the probabilities of one batch element and head by; ones without a key. Their
/// numbers are row-major indices in [b, h, s, t] of the full sequences, of which this may be a shard.
template <typename Op>
Matrix factors(Op op, const Extras &extras, const Positions &at, int64_t b, int64_t h,
               int64_t heads) {
  Matrix result(at.queries.size(), at.keys.size());
  llvm::fill(result.data, 1.0);
  if (!extras.key)
    return result;
  double ratio = op.getRatio()->convertToDouble();
  int64_t elements = op.getQ().getType().getDimSize(0) * heads * at.s * at.t;
  if (auto full = op.getFullShape()) {
    heads = (*full)[1];
    elements = (*full)[0] * heads * at.s * at.t;
  }
  int64_t first = extras.micro->ints[0] * elements + (extras.first ? extras.first->ints[0] : 0) +
                  (b * heads + h) * at.s * at.t;
  for (int64_t i = 0; i < result.rows; ++i)
    for (int64_t j = 0; j < result.columns; ++j)
      result.at(i, j) =
          isDropped(static_cast<uint64_t>(extras.key->ints[0]), static_cast<int64_t>(*op.getId()),
                    first + at.queries[i] * at.t + at.keys[j], ratio)
              ? 0
              : 1 / (1 - ratio);
  return result;
}

/// A query that sees no key (causal, t < s) has no softmax. Kernels choose tiles by first keys, which
/// never fall.
template <typename Op>
LogicalResult checkVisible(Op op, const Positions &at, const Tensor *firstKeys) {
  int64_t s = at.s, t = at.t, rows = int64_t(at.queries.size());
  if (op.getCausal() && t < s)
    return op.emitError() << "is causal with " << s << " queries but only " << t
                          << " keys: the first queries see none";
  for (int64_t row = 0; firstKeys && row < firstKeys->size(); ++row) {
    int64_t first = firstKeys->ints[row], i = row % rows;
    if (first < 0 || first >= visible(op, nullptr, at, 0, i).end)
      return op.emitError() << "query " << at.queries[i] << " of sequence " << row / rows
                            << " begins at key " << first << ": it sees none";
    if (i > 0 && first < firstKeys->ints[row - 1])
      return op.emitError() << "query " << at.queries[i] << " of sequence " << row / rows
                            << " begins at key " << first << ", before the query in front of it";
  }
  return success();
}

/// Adds to the gradients those of one batch element and head, from probabilities P, what dropout multiplies them by,
/// and the sum of dout out of each row:
///   dv += (P M)^T dout;  dS = P (M (dout v^T) - sum);  dq += scale dS k;  dk += scale dS^T q;  dbias += dS.
/// Heads that share a key head, and elements that share a bias, add up.
template <typename Op>
void addGradients(Op op, Inputs in, const Tensor &dout, Outputs out, const Extras &extras,
                  const Positions &at, int64_t b, int64_t h, Matrix p, const Matrix &kept,
                  function_ref<double(int64_t, const Matrix &)> rowSum) {
  double scale = op.getScale().convertToDouble();
  int64_t kv = keyHead(*in[0], *in[1], h);
  Matrix q = headOf(*in[0], b, h), k = headOf(*in[1], b, kv), v = headOf(*in[2], b, kv),
         d = headOf(dout, b, h);
  Matrix ds = d * turned(v);
  ds.scaleBy(kept);
  for (int64_t i = 0; i < p.rows; ++i) {
    double dot = rowSum(i, ds);
    for (int64_t j = 0; j < p.columns; ++j) {
      ds.at(i, j) = p.at(i, j) * (ds.at(i, j) - dot);
      if (extras.bias && out.size() > 3)
        out[3].reals[biasPosition(*extras.bias, b, h, i, at.keys[j])] += ds.at(i, j);
    }
  }
  addHead(out[0], b, h, ds * k, scale);
  addHead(out[1], b, kv, turned(ds) * q, scale);
  p.scaleBy(kept);
  addHead(out[2], b, kv, turned(p) * d);
}

} // namespace partita::interp::attention

#endif // PARTITA_LIB_INTERP_ATTENTIONMATH_H
