//===- Rows.cpp - kernels that work on rows: softmax and norms -------------------------------===//
//
// The gradients are written from the mathematics, not from the op table's formulas.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

static LogicalResult softmax(tx::SoftmaxOp, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row) {
    const double *x = in[0]->reals.data() + row * n;
    double *y = out[0].reals.data() + row * n;
    double largest = n ? *std::max_element(x, x + n) : 0, sum = 0;
    for (int64_t j = 0; j < n; ++j)
      sum += y[j] = std::exp(x[j] - largest);
    for (int64_t j = 0; j < n; ++j)
      y[j] /= sum;
  }
  return success();
}

/// The Jacobian of softmax at its value y is diag(y) - y y^T, here applied entry by entry. Where nothing
/// comes in nothing flows, although y is NaN (a row of -inf from a select).
static LogicalResult softmaxGrad(tx::SoftmaxGradOp, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row) {
    const double *y = in[0]->reals.data() + row * n, *dy = in[1]->reals.data() + row * n;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (dy[j] != 0)
          out[0].reals[row * n + i] += y[j] * ((i == j) - y[i]) * dy[j];
  }
  return success();
}

static LogicalResult layerNorm(tx::LayerNormOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row) {
    const double *x = in[0]->reals.data() + row * n;
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < n; ++j)
      mean += x[j] / n;
    for (int64_t j = 0; j < n; ++j)
      variance += (x[j] - mean) * (x[j] - mean) / n;
    double rstd = 1 / std::sqrt(variance + op.getEpsilon().convertToDouble());
    for (int64_t j = 0; j < n; ++j)
      out[0].reals[row * n + j] = (x[j] - mean) * rstd * in[1]->reals[j] + in[2]->reals[j];
    out[1].reals[row] = mean;
    out[2].reals[row] = rstd;
  }
  return success();
}

/// With h = (x - mean) rstd and c = w dy: dh_i / dx_j = rstd (delta_ij - 1/n - h_i h_j / n), so
/// dx_j = rstd (c_j - (sum of c) / n - h_j (sum of c h) / n).
static LogicalResult layerNormGrad(tx::LayerNormGradOp, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1);
  std::vector<double> h(n), c(n);
  for (int64_t row = 0; row < in[0]->leading(1); ++row) {
    const double *x = in[0]->reals.data() + row * n, *dy = in[4]->reals.data() + row * n;
    double mean = in[2]->reals[row], rstd = in[3]->reals[row], sumC = 0, sumCH = 0;
    for (int64_t j = 0; j < n; ++j) {
      h[j] = (x[j] - mean) * rstd;
      c[j] = in[1]->reals[j] * dy[j];
      sumC += c[j];
      sumCH += c[j] * h[j];
      out[1].reals[j] += dy[j] * h[j];
      out[2].reals[j] += dy[j];
    }
    for (int64_t j = 0; j < n; ++j)
      out[3].reals[j] += out[0].reals[row * n + j] = rstd * (c[j] - sumC / n - h[j] * sumCH / n);
  }
  return success();
}

static LogicalResult layerNormGradAdd(tx::LayerNormGradAddOp, Inputs in, Outputs out) {
  if (failed(layerNormGrad({}, in.take_front(5), out)))
    return failure();
  out[0].add(*in[5]);
  int64_t n = in[5]->dim(-1);
  for (size_t i = 0; i < in[5]->reals.size(); ++i)
    out[3].reals[i % n] += in[5]->reals[i];
  return success();
}

static LogicalResult rmsNorm(tx::RmsNormOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row) {
    const double *x = in[0]->reals.data() + row * n;
    double square = 0;
    for (int64_t j = 0; j < n; ++j)
      square += x[j] * x[j] / n;
    double rstd = 1 / std::sqrt(square + op.getEpsilon().convertToDouble());
    for (int64_t j = 0; j < n; ++j)
      out[0].reals[row * n + j] = x[j] * rstd * in[1]->reals[j];
    out[1].reals[row] = rstd;
  }
  return success();
}

/// With h = x rstd and c = w dy: dh_i / dx_j = rstd (delta_ij - h_i h_j / n), so
/// dx_j = rstd (c_j - h_j (sum of c h) / n).
static LogicalResult rmsNormGrad(tx::RmsNormGradOp, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row) {
    const double *x = in[0]->reals.data() + row * n, *dy = in[3]->reals.data() + row * n;
    double rstd = in[2]->reals[row], sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      sum += in[1]->reals[j] * dy[j] * x[j] * rstd;
      out[1].reals[j] += dy[j] * x[j] * rstd;
    }
    for (int64_t j = 0; j < n; ++j)
      out[0].reals[row * n + j] = rstd * (in[1]->reals[j] * dy[j] - x[j] * rstd * sum / n);
  }
  return success();
}

static LogicalResult rmsNormGradAdd(tx::RmsNormGradAddOp, Inputs in, Outputs out) {
  if (failed(rmsNormGrad({}, in.take_front(4), out)))
    return failure();
  out[0].add(*in[4]);
  return success();
}

void partita::interp::addRowKernels(KernelTable &table) {
  table.add<tx::SoftmaxOp>(softmax);
  table.add<tx::SoftmaxGradOp>(softmaxGrad);
  table.add<tx::LayerNormOp>(layerNorm);
  table.add<tx::LayerNormGradOp>(layerNormGrad);
  table.add<tx::LayerNormGradAddOp>(layerNormGradAdd);
  table.add<tx::RmsNormOp>(rmsNorm);
  table.add<tx::RmsNormGradOp>(rmsNormGrad);
  table.add<tx::RmsNormGradAddOp>(rmsNormGradAdd);
}
