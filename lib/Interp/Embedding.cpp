//===- Embedding.cpp - kernels that look tokens up: embedding and cross-entropy ---------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"
#include "runtime/include/partita_rt/shards.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// The rows of a table or logits that a rank has: from `first` on, `count` of `full`.
struct Rows {
  int64_t first, count, full;
  Rows(Value table, unsigned dim, const Tensor *firstIndex)
      : first(firstIndex ? firstIndex->ints[0] : 0),
        count(cast<RankedTensorType>(table.getType()).getDimSize(dim)),
        full(par::fullType(table.getType()).getDimSize(dim)) {}
  bool has(int64_t token) const { return token >= first && token < first + count; }
};

static const Tensor *optional(Inputs in, size_t i) { return i < in.size() ? in[i] : nullptr; }

/// `what`: of what the rows are.
static LogicalResult checkIndex(Operation *op, const char *what, int64_t index, const Rows &rows,
                                int64_t position) {
  if (index >= 0 && index < rows.full)
    return success();
  return op->emitError() << "index " << index << " at position " << position << " is outside 0 .. "
                         << rows.full - 1 << ", the " << what;
}
static LogicalResult checkLabel(Operation *op, int64_t label, const Rows &rows, int64_t position) {
  return checkIndex(op, "classes of a label", label, rows, position);
}

static LogicalResult embedding(tx::EmbeddingOp op, Inputs in, Outputs out) {
  int64_t width = in[0]->dim(1);
  Rows rows(op.getTable(), 0, optional(in, 2));
  for (int64_t i = 0; i < in[1]->size(); ++i) {
    int64_t token = in[1]->ints[i];
    if (failed(checkIndex(op, "rows of the table", token, rows, i)))
      return failure();
    for (int64_t j = 0; j < width && rows.has(token); ++j)
      out[0].copyElement(i * width + j, *in[0], (token - rows.first) * width + j);
  }
  return success();
}

static LogicalResult embeddingGrad(tx::EmbeddingGradOp op, Inputs in, Outputs out) {
  int64_t width = out[0].dim(1);
  Rows rows(op.getDtable(), 0, optional(in, 2));
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    int64_t token = in[0]->ints[i];
    if (failed(checkIndex(op, "rows of the table", token, rows, i)))
      return failure();
    if (op.getPadding() == token)
      continue;
    for (int64_t j = 0; j < width && rows.has(token); ++j)
      out[0].reals[(token - rows.first) * width + j] += in[1]->reals[i * width + j];
  }
  return success();
}

/// Of the tables [..., rows, width] the one that the i-th of `ids` [..., m] looks into, and where
/// in it the row begins.
static FailureOr<int64_t> rowOf(Operation *op, const Tensor &ids, int64_t i, const Tensor &tables) {
  int64_t id = ids.ints[i], rows = tables.dim(-2);
  if (id < 0 || id >= rows)
    return op->emitError() << "index " << id << " at position " << i << " is outside a table of "
                           << rows << " rows";
  return (i / ids.dim(-1) * rows + id) * tables.dim(-1);
}

static LogicalResult take(tx::TakeOp op, Inputs in, Outputs out) {
  int64_t width = in[0]->dim(-1);
  for (int64_t i = 0; i < in[1]->size(); ++i) {
    FailureOr<int64_t> row = rowOf(op, *in[1], i, *in[0]);
    if (failed(row))
      return failure();
    for (int64_t j = 0; j < width; ++j)
      out[0].copyElement(i * width + j, *in[0], *row + j);
  }
  return success();
}

static LogicalResult takeGrad(tx::TakeGradOp op, Inputs in, Outputs out) {
  int64_t width = out[0].dim(-1);
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    FailureOr<int64_t> row = rowOf(op, *in[0], i, out[0]);
    if (failed(row))
      return failure();
    for (int64_t j = 0; j < width; ++j)
      out[0].reals[*row + j] += in[1]->reals[i * width + j];
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

static LogicalResult logSumExps(tx::LogSumExpOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1), parts = out[0].dim(-1);
  int64_t part = partita_rt::shardSize(n, parts);
  Rows columns(op.getX(), op.getX().getType().getRank() - 1, optional(in, 1));
  for (int64_t i = 0; i < out[0].size(); ++i) {
    int64_t begin = i % parts * part;
    int64_t end = std::min(std::min(begin + part, n), columns.full - columns.first);
    out[0].reals[i] =
        logSumExp(in[0]->reals.data() + i / parts * n + begin, std::max<int64_t>(end - begin, 0));
  }
  return success();
}

static LogicalResult crossEntropy(tx::CrossEntropyOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1), ignored = op.getIgnoreIndex();
  Rows rows(op.getLogits(), op.getLogits().getType().getRank() - 1, nullptr);
  for (int64_t i = 0; i < in[1]->size(); ++i) {
    const double *x = in[0]->reals.data() + i * n;
    int64_t label = in[1]->ints[i];
    if (label != ignored && failed(checkLabel(op, label, rows, i)))
      return failure();
    out[1].reals[i] = logSumExp(x, n);
    out[0].reals[i] = label == ignored ? 0 : out[1].reals[i] - x[label];
  }
  return success();
}

static LogicalResult tokenLoss(tx::TokenLossOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1), ignored = op.getIgnoreIndex();
  Rows rows(op.getLogits(), op.getLogits().getType().getRank() - 1, optional(in, 3));
  for (int64_t i = 0; i < in[1]->size(); ++i) {
    int64_t label = in[1]->ints[i];
    if (label == ignored)
      continue;
    if (failed(checkLabel(op, label, rows, i)))
      return failure();
    if (rows.has(label))
      out[0].reals[i] = in[2]->reals[i] - in[0]->reals[i * n + label - rows.first];
  }
  return success();
}

/// d loss / d x_j = softmax(x)_j - [j is the label].
static LogicalResult crossEntropyGrad(tx::CrossEntropyGradOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1), ignored = op.getIgnoreIndex();
  Rows rows(op.getLogits(), op.getLogits().getType().getRank() - 1, optional(in, 4));
  for (int64_t i = 0; i < in[1]->size(); ++i) {
    const double *x = in[0]->reals.data() + i * n;
    int64_t label = in[1]->ints[i];
    if (label == ignored)
      continue;
    if (failed(checkLabel(op, label, rows, i)))
      return failure();
    double lse = in[2]->reals[i]; // of the whole row: a shard of the logits does not know it
    for (int64_t j = 0; j < std::min(n, rows.full - rows.first); ++j)
      out[0].reals[i * n + j] =
          in[3]->reals[i] * (std::exp(x[j] - lse) - (j + rows.first == label));
  }
  return success();
}

/// Calls visit(i, label, logits, log of the sum of their exponentials) for every token of a
/// classifier (x, w, labels) whose label counts; a logit is x . w_j.
template <typename Op, typename Visit>
static LogicalResult forCountedTokens(Op op, Inputs in, Visit visit) {
  int64_t n = in[1]->dim(0), k = in[1]->dim(1);
  std::vector<double> logits(n);
  Rows rows(op.getW(), 0, nullptr);
  for (int64_t i = 0; i < in[2]->size(); ++i) {
    int64_t label = in[2]->ints[i];
    if (label == static_cast<int64_t>(op.getIgnoreIndex()))
      continue;
    if (failed(checkLabel(op, label, rows, i)))
      return failure();
    for (int64_t j = 0; j < n; ++j) {
      logits[j] = 0;
      for (int64_t d = 0; d < k; ++d)
        logits[j] += in[0]->reals[i * k + d] * in[1]->reals[j * k + d];
    }
    visit(i, label, logits, logSumExp(logits.data(), n));
  }
  return success();
}

static LogicalResult classifierLoss(tx::ClassifierLossOp op, Inputs in, Outputs out) {
  return forCountedTokens(op, in,
                          [&](int64_t i, int64_t label, const std::vector<double> &logits,
                              double lse) { out[0].reals[i] = lse - logits[label]; });
}

/// d loss / d logits as in crossEntropyGrad; dx = sum of d_j w_j, dw_j = d_j x.
static LogicalResult classifierLossGrad(tx::ClassifierLossGradOp op, Inputs in, Outputs out) {
  int64_t n = in[1]->dim(0), k = in[1]->dim(1);
  return forCountedTokens(
      op, in, [&](int64_t i, int64_t label, const std::vector<double> &logits, double lse) {
        out[0].reals[i] = lse - logits[label];
        for (int64_t j = 0; j < n; ++j) {
          double d = in[3]->reals[i] * (std::exp(logits[j] - lse) - (j == label));
          for (int64_t c = 0; c < k; ++c) {
            out[1].reals[i * k + c] += d * in[1]->reals[j * k + c];
            out[2].reals[j * k + c] += d * in[0]->reals[i * k + c];
          }
        }
      });
}

void partita::interp::addEmbeddingKernels(KernelTable &table) {
  table.add<tx::EmbeddingOp>(embedding);
  table.add<tx::EmbeddingGradOp>(embeddingGrad);
  table.add<tx::TakeOp>(take);
  table.add<tx::TakeGradOp>(takeGrad);
  table.add<tx::LogSumExpOp>(logSumExps);
  table.add<tx::CrossEntropyOp>(crossEntropy);
  table.add<tx::TokenLossOp>(tokenLoss);
  table.add<tx::CrossEntropyGradOp>(crossEntropyGrad);
  table.add<tx::ClassifierLossOp>(classifierLoss);
  table.add<tx::ClassifierLossGradOp>(classifierLossGrad);
}
