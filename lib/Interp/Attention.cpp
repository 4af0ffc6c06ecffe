//===- Attention.cpp - kernels of attention ---------------------------------------------------===//
//
// One batch element and head at a time, with the whole matrix of probabilities. The backward pass
// computes them again from q and k: it trusts neither `out` nor `lse`.
//
//===------------------------------------------------------------------------------------------===//

#include "Execution.h"
#include "dialects/Tx/Tx.h"

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

void putHead(Tensor &tensor, int64_t b, int64_t h, const Matrix &head, double scale = 1) {
  for (int64_t i = 0; i < head.rows; ++i)
    for (int64_t j = 0; j < head.columns; ++j)
      tensor.reals[position(tensor, b, i, h) + j] = scale * head.at(i, j);
}

/// softmax(scale q k^T) with masked keys at zero; lse gets the rows' log of the denominator.
Matrix probabilities(const Matrix &q, const Matrix &k, double scale, bool causal, double *lse) {
  Matrix p = q * turned(k);
  for (int64_t i = 0; i < p.rows; ++i) {
    int64_t visible =
        causal ? std::clamp<int64_t>(i + 1 + p.columns - p.rows, 0, p.columns) : p.columns;
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < visible; ++j)
      largest = std::max(largest, p.at(i, j) *= scale);
    for (int64_t j = 0; j < visible; ++j)
      sum += p.at(i, j) = std::exp(p.at(i, j) - largest);
    for (int64_t j = 0; j < p.columns; ++j)
      p.at(i, j) = j < visible ? p.at(i, j) / sum : 0;
    if (lse)
      lse[i] = largest + std::log(sum);
  }
  return p;
}

} // namespace

/// A query that sees no key (causal, t < s) has no softmax.
template <typename Op> static LogicalResult checkVisible(Op op, const Tensor &q, const Tensor &k) {
  if (op.getCausal() && k.shape[1] < q.shape[1])
    return op.emitError() << "is causal with " << q.shape[1] << " queries but only " << k.shape[1]
                          << " keys: the first queries see none";
  return success();
}

static LogicalResult attention(tx::AttentionOp op, Inputs in, Outputs out) {
  if (failed(checkVisible(op, *in[0], *in[1])))
    return failure();
  int64_t heads = in[0]->shape[2], s = in[0]->shape[1];
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      Matrix p =
          probabilities(headOf(*in[0], b, h), headOf(*in[1], b, h), op.getScale().convertToDouble(),
                        op.getCausal(), out[1].reals.data() + (b * heads + h) * s);
      putHead(out[0], b, h, p * headOf(*in[2], b, h));
    }
  return success();
}

/// out = P v, P = softmax of rows of S = scale q k^T:
///   dv = P^T dout;  dP = dout v^T;  dS_ij = P_ij (dP_ij - sum_l P_il dP_il);
///   dq = scale dS k;  dk = scale dS^T q.
static LogicalResult attentionGrad(tx::AttentionGradOp op, Inputs in, Outputs out) {
  if (failed(checkVisible(op, *in[0], *in[1])))
    return failure();
  double scale = op.getScale().convertToDouble();
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < in[0]->shape[2]; ++h) {
      Matrix q = headOf(*in[0], b, h), k = headOf(*in[1], b, h), v = headOf(*in[2], b, h),
             dout = headOf(*in[5], b, h);
      Matrix p = probabilities(q, k, scale, op.getCausal(), nullptr);
      Matrix ds = dout * turned(v);
      for (int64_t i = 0; i < p.rows; ++i) {
        double dot = 0;
        for (int64_t j = 0; j < p.columns; ++j)
          dot += p.at(i, j) * ds.at(i, j);
        for (int64_t j = 0; j < p.columns; ++j)
          ds.at(i, j) = p.at(i, j) * (ds.at(i, j) - dot);
      }
      putHead(out[0], b, h, ds * k, scale);
      putHead(out[1], b, h, turned(ds) * q, scale);
      putHead(out[2], b, h, turned(p) * dout);
    }
  return success();
}

void partita::interp::addAttentionKernels(KernelTable &table) {
  table.add<tx::AttentionOp>(attention);
  table.add<tx::AttentionGradOp>(attentionGrad);
}
