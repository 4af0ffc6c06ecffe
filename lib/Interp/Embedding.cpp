//===- Embedding.cpp - kernels that look tokens up: embedding and cross-entropy ---------------===//

#include "Execution.h"
#include "dialects/Tx/Tx.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

static LogicalResult checkToken(Operation *op, int64_t token, int64_t count, int64_t position) {
  if (token >= 0 && token < count)
    return success();
  return op->emitError() << "token " << token << " at position " << position
                         << " is outside the vocabulary of " << count;
}

static LogicalResult embedding(tx::EmbeddingOp op, Inputs in, Outputs out) {
  int64_t width = in[0]->dim(1);
  for (int64_t i = 0; i < in[1]->size(); ++i) {
    if (failed(checkToken(op, in[1]->ints[i], in[0]->dim(0), i)))
      return failure();
    for (int64_t j = 0; j < width; ++j)
      out[0].copyElement(i * width + j, *in[0], in[1]->ints[i] * width + j);
  }
  return success();
}

static LogicalResult embeddingGrad(tx::EmbeddingGradOp op, Inputs in, Outputs out) {
  int64_t width = out[0].dim(1);
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    if (failed(checkToken(op, in[0]->ints[i], out[0].dim(0), i)))
      return failure();
    for (int64_t j = 0; j < width; ++j)
      out[0].reals[in[0]->ints[i] * width + j] += in[1]->reals[i * width + j];
  }
  return success();
}

/// log of the sum of exponentials of a row.
static double logSumExp(const double *x, int64_t n) {
  double largest = n ? *std::max_element(x, x + n) : 0, sum = 0;
  for (int64_t j = 0; j < n; ++j)
    sum += std::exp(x[j] - largest);
  return largest + std::log(sum);
}

static LogicalResult crossEntropy(tx::CrossEntropyOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1), ignored = op.getIgnoreIndex();
  for (int64_t i = 0; i < in[1]->size(); ++i) {
    const double *x = in[0]->reals.data() + i * n;
    int64_t label = in[1]->ints[i];
    if (label != ignored && failed(checkToken(op, label, n, i)))
      return failure();
    out[1].reals[i] = logSumExp(x, n);
    out[0].reals[i] = label == ignored ? 0 : out[1].reals[i] - x[label];
  }
  return success();
}

/// d loss / d x_j = softmax(x)_j - [j is the label].
static LogicalResult crossEntropyGrad(tx::CrossEntropyGradOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1), ignored = op.getIgnoreIndex();
  for (int64_t i = 0; i < in[1]->size(); ++i) {
    const double *x = in[0]->reals.data() + i * n;
    int64_t label = in[1]->ints[i];
    if (label == ignored)
      continue;
    if (failed(checkToken(op, label, n, i)))
      return failure();
    double lse = logSumExp(x, n);
    for (int64_t j = 0; j < n; ++j)
      out[0].reals[i * n + j] = in[3]->reals[i] * (std::exp(x[j] - lse) - (j == label));
  }
  return success();
}

void partita::interp::addEmbeddingKernels(KernelTable &table) {
  table.add<tx::EmbeddingOp>(embedding);
  table.add<tx::EmbeddingGradOp>(embeddingGrad);
  table.add<tx::CrossEntropyOp>(crossEntropy);
  table.add<tx::CrossEntropyGradOp>(crossEntropyGrad);
}
