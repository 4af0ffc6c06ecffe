//===- Attention.cpp - kernels of attention ---------------------------------------------------===//
//
// One batch element and head at a time, with the whole matrix of probabilities. The backward pass
// computes them again from q and k: it trusts neither `out` nor `lse`.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"
#include "partita/Interp/Random.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

namespace {

/// Row-major [rows, columns].
struct Matrix {
  int64_t rows, columns;
  std::vector<double> data;
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), data(rows * columns, 0.0) {}
  double &at(int64_t i, int64_t j) { return data[i * columns + j]; }
  double at(int64_t i, int64_t j) const { return data[i * columns + j]; }
};

Matrix operator*(const Matrix &a, const Matrix &b) {
  Matrix c(a.rows, b.columns);
  multiplyAdd(a.data.data(), b.data.data(), c.data.data(), a.rows, a.columns, b.columns);
  return c;
}

Matrix turned(const Matrix &a) {
  Matrix result(a.columns, a.rows);
  result.data = transposed(a.data.data(), a.rows, a.columns);
  return result;
}

/// Where element [b, i, h, 0] of a tensor [b, s, h, d] stands.
int64_t position(const Tensor &tensor, int64_t b, int64_t i, int64_t h) {
  return ((b * tensor.shape[1] + i) * tensor.shape[2] + h) * tensor.shape[3];
}

/// tensor[b, :, h, :].
Matrix headOf(const Tensor &tensor, int64_t b, int64_t h) {
  Matrix result(tensor.shape[1], tensor.shape[3]);
  for (int64_t i = 0; i < result.rows; ++i)
    std::copy_n(tensor.reals.begin() + position(tensor, b, i, h), result.columns,
                &result.data[i * result.columns]);
  return result;
}

void addHead(Tensor &tensor, int64_t b, int64_t h, const Matrix &head, double scale = 1) {
  for (int64_t i = 0; i < head.rows; ++i)
    for (int64_t j = 0; j < head.columns; ++j)
      tensor.reals[position(tensor, b, i, h) + j] += scale * head.at(i, j);
}

/// The optional operands; null where there is none.
struct Extras {
  const Tensor *bias, *firstKeys, *firstHead, *key, *micro, *first;
  template <typename Op> Extras(Op op, Inputs in) {
    unsigned next = std::is_same_v<Op, tx::AttentionOp> ? 3 : 6;
    for (const Tensor **each : {&bias, &firstKeys, &firstHead, &key, &micro, &first}) {
      auto [index, count] = op.getODSOperandIndexAndLength(next++);
      *each = count ? in[index] : nullptr;
    }
  }
};

/// Query i of s of a batch element sees keys [first, end) of t.
struct Visible {
  int64_t first, end;
};
template <typename Op>
Visible visible(Op op, const Tensor *firstKeys, int64_t b, int64_t i, int64_t s, int64_t t) {
  int64_t end = op.getCausal() ? std::clamp<int64_t>(i + 1 + t - s, 0, t) : t;
  int64_t first = firstKeys ? firstKeys->ints[b * s + i] : 0;
  return {op.getWindow() ? std::max(first, end - static_cast<int64_t>(*op.getWindow())) : first,
          end};
}

/// Where element [b, h, i, j] of a bias stands that may have dimensions of size one.
int64_t biasPosition(const Tensor &bias, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t index[] = {b, h, i, j};
  int64_t position = 0;
  for (unsigned d = 0; d < 4; ++d)
    position = position * bias.shape[d] + (bias.shape[d] == 1 ? 0 : index[d]);
  return position;
}

/// The head of k and v that query head h reads.
int64_t keyHead(const Tensor &q, const Tensor &k, int64_t h) {
  return h / (q.shape[2] / k.shape[2]);
}

/// Which keys query i of a head sees, whatever its position in a document.
template <typename Op> class VisibleBlocks {
public:
  /// h: the head of this rank.
  VisibleBlocks(Op op, const Extras &extras, int64_t h, int64_t s) {
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

/// softmax(scale q k^T + bias) of one batch element and head, zero where a query does not see the
/// key; lse gets the rows' log of the denominator.
template <typename Op>
Matrix probabilities(Op op, const Tensor &qs, const Tensor &ks, const Extras &extras, int64_t b,
                     int64_t h, double *lse) {
  const Tensor *bias = extras.bias;
  Matrix p = headOf(qs, b, h) * turned(headOf(ks, b, keyHead(qs, ks, h)));
  VisibleBlocks blocks(op, extras, h, p.rows);
  double scale = op.getScale().convertToDouble();
  for (int64_t i = 0; i < p.rows; ++i) {
    auto [first, end] = visible(op, extras.firstKeys, b, i, p.rows, p.columns);
    double largest = -INFINITY, sum = 0;
    std::vector<char> seen(p.columns);
    for (int64_t j = first; j < end; ++j) {
      seen[j] = blocks.sees(i, j);
      p.at(i, j) = p.at(i, j) * scale + (bias ? bias->reals[biasPosition(*bias, b, h, i, j)] : 0);
      if (seen[j])
        largest = std::max(largest, p.at(i, j));
    }
    bool hidden = op.getZeroHidden() && largest == -INFINITY;
    for (int64_t j = first; j < end; ++j)
      if (seen[j])
        sum += p.at(i, j) = std::exp(p.at(i, j) - largest);
    for (int64_t j = 0; j < p.columns; ++j)
      p.at(i, j) = seen[j] && !hidden ? p.at(i, j) / sum : 0;
    if (lse)
      lse[i] = hidden ? -INFINITY : largest + std::log(sum);
  }
  return p;
}

/// What dropout multiplies the probabilities of one batch element and head by; ones without a key. Their
/// numbers are row-major indices in [b, h, s, t], of which this may be a shard.
template <typename Op>
Matrix factors(Op op, const Extras &extras, int64_t b, int64_t h, int64_t heads, int64_t s,
               int64_t t) {
  Matrix result(s, t);
  llvm::fill(result.data, 1.0);
  if (!extras.key)
    return result;
  double ratio = op.getRatio()->convertToDouble();
  int64_t elements = op.getQ().getType().getDimSize(0) * heads * s * t;
  if (auto full = op.getFullShape()) {
    heads = (*full)[1];
    elements = (*full)[0] * heads * s * t;
  }
  int64_t first = extras.micro->ints[0] * elements + (extras.first ? extras.first->ints[0] : 0) +
                  (b * heads + h) * s * t;
  for (int64_t i = 0; i < s * t; ++i)
    result.data[i] = isDropped(static_cast<uint64_t>(extras.key->ints[0]),
                               static_cast<int64_t>(*op.getId()), first + i, ratio)
                         ? 0
                         : 1 / (1 - ratio);
  return result;
}

/// A query that sees no key (causal, t < s) has no softmax. Kernels choose tiles by first keys, which
/// never fall.
template <typename Op>
LogicalResult checkVisible(Op op, const Tensor &q, const Tensor &k, const Tensor *firstKeys) {
  int64_t s = q.shape[1], t = k.shape[1];
  if (op.getCausal() && t < s)
    return op.emitError() << "is causal with " << s << " queries but only " << t
                          << " keys: the first queries see none";
  for (int64_t row = 0; firstKeys && row < firstKeys->size(); ++row) {
    int64_t first = firstKeys->ints[row], i = row % s;
    if (first < 0 || first >= visible(op, nullptr, 0, i, s, t).end)
      return op.emitError() << "query " << i << " of sequence " << row / s << " begins at key "
                            << first << ": it sees none";
    if (i > 0 && first < firstKeys->ints[row - 1])
      return op.emitError() << "query " << i << " of sequence " << row / s << " begins at key "
                            << first << ", before the query in front of it";
  }
  return success();
}

} // namespace

static LogicalResult attention(tx::AttentionOp op, Inputs in, Outputs out) {
  Extras extras(op, in);
  if (failed(checkVisible(op, *in[0], *in[1], extras.firstKeys)))
    return failure();
  int64_t heads = in[0]->shape[2], s = in[0]->shape[1];
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      Matrix p = probabilities(op, *in[0], *in[1], extras, b, h,
                               out[1].reals.data() + (b * heads + h) * s);
      Matrix kept = factors(op, extras, b, h, heads, p.rows, p.columns);
      for (auto [weight, factor] : llvm::zip_equal(p.data, kept.data))
        weight *= factor;
      addHead(out[0], b, h, p * headOf(*in[2], b, keyHead(*in[0], *in[1], h)));
    }
  return success();
}

/// out = (P M) v, P = softmax of rows of S = scale q k^T + bias, M what dropout multiplies by:
///   dv = (P M)^T dout;  dP = M (dout v^T);  dS_ij = P_ij (dP_ij - sum_l P_il dP_il);
///   dq = scale dS k;  dk = scale dS^T q;  dbias = dS.
/// Heads that share a key head, and elements that share a bias, add up.
static LogicalResult attentionGrad(tx::AttentionGradOp op, Inputs in, Outputs out) {
  Extras extras(op, in);
  if (failed(checkVisible(op, *in[0], *in[1], extras.firstKeys)))
    return failure();
  double scale = op.getScale().convertToDouble();
  const Tensor *bias = extras.bias;
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < in[0]->shape[2]; ++h) {
      int64_t kv = keyHead(*in[0], *in[1], h);
      Matrix q = headOf(*in[0], b, h), k = headOf(*in[1], b, kv), v = headOf(*in[2], b, kv),
             dout = headOf(*in[5], b, h);
      Matrix p = probabilities(op, *in[0], *in[1], extras, b, h, nullptr);
      Matrix ds = dout * turned(v);
      Matrix kept = factors(op, extras, b, h, in[0]->shape[2], p.rows, p.columns);
      for (auto [gradient, factor] : llvm::zip_equal(ds.data, kept.data))
        gradient *= factor;
      for (int64_t i = 0; i < p.rows; ++i) {
        double dot = 0;
        for (int64_t j = 0; j < p.columns; ++j)
          dot += p.at(i, j) * ds.at(i, j);
        for (int64_t j = 0; j < p.columns; ++j) {
          ds.at(i, j) = p.at(i, j) * (ds.at(i, j) - dot);
          if (bias)
            out[3].reals[biasPosition(*bias, b, h, i, j)] += ds.at(i, j);
        }
      }
      addHead(out[0], b, h, ds * k, scale);
      addHead(out[1], b, kv, turned(ds) * q, scale);
      for (auto [weight, factor] : llvm::zip_equal(p.data, kept.data))
        weight *= factor;
      addHead(out[2], b, kv, turned(p) * dout);
    }
  return success();
}

static LogicalResult documentStarts(tx::DocumentStartsOp op, Inputs in, Outputs out) {
  int64_t width = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row) {
    llvm::SmallDenseSet<int64_t> seen;
    int64_t start = 0;
    for (int64_t i = 0; i < width; ++i) {
      int64_t id = in[0]->ints[row * width + i];
      if (op.getAfter())
        start = i > 0 && in[0]->ints[row * width + i - 1] == op.getAfter() ? i : start;
      else if (i == 0 || id != in[0]->ints[row * width + i - 1]) {
        start = i;
        if (!seen.insert(id).second)
          return op.emitError() << "id " << id << " of sequence " << row
                                << " comes back at position " << i << ", after another document";
      }
      out[0].ints[row * width + i] = start;
    }
  }
  return success();
}

static LogicalResult rotateHalf(tx::RotateHalfOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row)
    for (int64_t i = 0; i < n / 2; ++i) {
      int64_t a = row * n + (op.getInterleaved() ? 2 * i : i),
              b = row * n + (op.getInterleaved() ? 2 * i + 1 : i + n / 2);
      out[0].reals[a] = -in[0]->reals[b];
      out[0].reals[b] = in[0]->reals[a];
    }
  return success();
}

/// x cos + R x sin, or with `back` x cos + R^T (x sin): R has row a -> -b, b -> a.
static LogicalResult rotary(tx::RotaryOp op, Inputs in, Outputs out) {
  const auto &x = in[0]->reals, &cos = in[1]->reals, &sin = in[2]->reals;
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row)
    for (int64_t i = 0; i < n / 2; ++i) {
      int64_t a = row * n + (op.getInterleaved() ? 2 * i : i),
              b = row * n + (op.getInterleaved() ? 2 * i + 1 : i + n / 2);
      bool back = op.getBack();
      out[0].reals[a] = x[a] * cos[a] + (back ? x[b] * sin[b] : -x[b] * sin[a]);
      out[0].reals[b] = x[b] * cos[b] + (back ? -x[a] * sin[a] : x[a] * sin[b]);
    }
  return success();
}

void partita::interp::addAttentionKernels(KernelTable &table) {
  table.add<tx::AttentionOp>(attention);
  table.add<tx::AttentionGradOp>(attentionGrad);
  table.add<tx::DocumentStartsOp>(documentStarts);
  table.add<tx::RotateHalfOp>(rotateHalf);
  table.add<tx::RotaryOp>(rotary);
}
