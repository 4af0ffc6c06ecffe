//===- EmbeddingAndLoss.cpp - embedding and loss ----------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/FusedLookup.h"
#include "dialects/Tx/Tx.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// The full value's size along a dimension.
int64_t fullSize(Value tensor, unsigned dim) {
  return par::fullType(tensor.getType()).getDimSize(dim);
}

/// The buffer of an operand that says where a rank's shard begins; null where there is none.
Value firstIndex(Lowering &l, unsigned operand) {
  return operand < l.op->getNumOperands() ? l.operand(operand) : Value();
}

struct Embedding : KernelInterface::ExternalModel<Embedding, tx::EmbeddingOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto table = l.type(op->getOperand(0)).getShape();
    if (table.size() != 2)
      return op->emitOpError() << "has no kernel for a table of type "
                               << op->getOperand(0).getType();
    l.create<EmbeddingForwardOp>(l.result(0), l.operand(1), l.operand(0), firstIndex(l, 2),
                                 l.elements(op->getOperand(1)), table[1],
                                 fullSize(op->getOperand(0), 0), table[0]);
    return success();
  }
};

struct EmbeddingGrad : KernelInterface::ExternalModel<EmbeddingGrad, tx::EmbeddingGradOp> {
  StringRef resultName(Operation *, unsigned) const { return "dtable"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto table = l.type(op->getResult(0)).getShape();
    l.create<EmbeddingBackwardOp>(l.result(0), l.operand(1), l.operand(0), firstIndex(l, 2),
                                  l.elements(op->getOperand(0)), table[1],
                                  fullSize(op->getResult(0), 0), table[0], false,
                                  cast<tx::EmbeddingGradOp>(op).getPaddingAttr());
    return success();
  }
};

/// The number of rows of a view after which they repeat: the last dimensions are contiguous, those before
/// them have a stride of 0. None for other views.
std::optional<int64_t> periodOf(const View &view) {
  if (view.shape.back() > 1 && view.strides.back() != 1)
    return std::nullopt;
  int64_t period = 1;
  bool repeats = false;
  for (size_t dim = view.shape.size() - 1; dim-- > 0;) {
    if (view.shape[dim] == 1)
      continue;
    bool isNext = !repeats && view.strides[dim] == period * view.shape.back();
    repeats = !isNext;
    if (repeats && view.strides[dim] != 0)
      return std::nullopt;
    period *= isNext ? view.shape[dim] : 1;
  }
  return period;
}

struct FusedLookup : KernelInterface::ExternalModel<FusedLookup, tx::FusedLookupOp> {
  /// Positions may repeat.
  bool acceptsOperand(Operation *op, unsigned operand, const View &view) const {
    auto parts = partsOf(op);
    return !parts.isGradient() && op->getRegion(0).getArgument(operand) == parts.addend &&
           periodOf(view).has_value();
  }
  SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned) const {
    return {cast<BlockArgument>(partsOf(op).addend).getArgNumber()};
  }
  StringRef resultName(Operation *op, unsigned) const {
    return partsOf(op).isGradient() ? "dtable" : "";
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto parts = partsOf(op);
    auto table = cast<RankedTensorType>(
        (parts.isGradient() ? parts.lookup->getResult(0) : parts.lookup->getOperand(0)).getType());
    if (table.getRank() != 2)
      return op->emitOpError() << "has no kernel for a table of type " << table;
    int64_t n = l.elements(parts.ids()), full = par::fullType(table).getDimSize(0);
    Value addend = parts.input(parts.addend), ids = l.buffer(parts.ids());
    Value first = parts.first() ? l.buffer(parts.first()) : Value();
    if (!parts.isGradient()) {
      l.create<EmbeddingAddOp>(l.result(0), ids, l.buffer(parts.input(parts.lookup->getOperand(0))),
                               l.buffer(addend), first, *periodOf(l.view(addend)), n,
                               table.getDimSize(1), full, table.getDimSize(0));
      return success();
    }
    if (!l.samePlace(op->getResult(0), addend))
      l.copy(l.result(0), l.view(op->getResult(0)), addend);
    l.create<EmbeddingBackwardOp>(l.result(0), l.buffer(parts.input(parts.lookup->getOperand(1))),
                                  ids, first, n, table.getDimSize(1), full, table.getDimSize(0),
                                  true, cast<tx::EmbeddingGradOp>(parts.lookup).getPaddingAttr());
    return success();
  }

private:
  static tx::FusedLookup partsOf(Operation *op) {
    return tx::FusedLookup::of(cast<tx::FusedLookupOp>(op));
  }
};

struct Take : KernelInterface::ExternalModel<Take, tx::TakeOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto x = l.type(op->getOperand(0)).getShape(), ids = l.type(op->getOperand(1)).getShape();
    l.create<TakeForwardOp>(l.result(0), l.operand(1), l.operand(0),
                            l.elements(op->getOperand(1)) / ids.back(), ids.back(), x[x.size() - 2],
                            x.back());
    return success();
  }
};

struct TakeGrad : KernelInterface::ExternalModel<TakeGrad, tx::TakeGradOp> {
  StringRef resultName(Operation *, unsigned) const { return "dx"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto dx = l.type(op->getResult(0)).getShape(), ids = l.type(op->getOperand(0)).getShape();
    l.create<TakeBackwardOp>(l.result(0), l.operand(1), l.operand(0),
                             l.elements(op->getOperand(0)) / ids.back(), ids.back(),
                             dx[dx.size() - 2], dx.back());
    return success();
  }
};

struct LogSumExp : KernelInterface::ExternalModel<LogSumExp, tx::LogSumExpOp> {
  StringRef resultName(Operation *, unsigned) const { return "lse"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto x = l.type(op->getOperand(0)).getShape();
    int64_t parts = l.type(op->getResult(0)).getShape().back(), width = x.back() / parts;
    Value first = firstIndex(l, 1);
    if (parts != 1 && (first || x.back() % parts != 0))
      return op->emitOpError() << "has no kernel on this target for a shard of several parts";
    l.create<rt::LogSumExpOp>(l.result(0), l.operand(0), first,
                              l.elements(op->getOperand(0)) / width,
                              first ? fullSize(op->getOperand(0), x.size() - 1) : width, width);
    return success();
  }
};

struct TokenLoss : KernelInterface::ExternalModel<TokenLoss, tx::TokenLossOp> {
  StringRef resultName(Operation *, unsigned) const { return "loss"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto logits = l.type(op->getOperand(0)).getShape();
    int64_t width = logits.back();
    l.create<rt::TokenLossOp>(l.result(0), l.operand(0), l.operand(2), l.operand(1),
                              firstIndex(l, 3), l.elements(op->getOperand(0)) / width,
                              fullSize(op->getOperand(0), logits.size() - 1), width,
                              cast<tx::TokenLossOp>(op).getIgnoreIndex());
    return success();
  }
};

struct CrossEntropy : KernelInterface::ExternalModel<CrossEntropy, tx::CrossEntropyOp> {
  StringRef resultName(Operation *, unsigned result) const { return result == 0 ? "loss" : "lse"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    int64_t width = l.type(op->getOperand(0)).getShape().back();
    l.create<CrossEntropyForwardOp>(l.result(0), l.result(1), l.operand(0), l.operand(1),
                                    l.elements(op->getOperand(0)) / width, width,
                                    cast<tx::CrossEntropyOp>(op).getIgnoreIndex());
    return success();
  }
};

struct CrossEntropyGrad : KernelInterface::ExternalModel<CrossEntropyGrad, tx::CrossEntropyGradOp> {
  /// The loss's cotangent may be one value for all tokens.
  bool acceptsOperand(Operation *, unsigned operand, const View &view) const {
    return operand == 3 && view.isScalar();
  }
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned) const { return {0}; }
  StringRef resultName(Operation *, unsigned) const { return "dlogits"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    int64_t width = l.type(op->getOperand(0)).getShape().back();
    int64_t rows = l.elements(op->getOperand(0)) / width;
    bool scalar = rows > 1 && l.view(op->getOperand(3)).isScalar();
    unsigned last = l.type(op->getOperand(0)).getRank() - 1;
    l.create<CrossEntropyBackwardOp>(l.result(0), l.operand(3), l.operand(0), l.operand(2),
                                     l.operand(1), firstIndex(l, 4), scalar ? 0 : 1, rows,
                                     fullSize(op->getOperand(0), last), width,
                                     cast<tx::CrossEntropyGradOp>(op).getIgnoreIndex());
    return success();
  }
};

ClassifierWork lossWork(Operation *op) {
  return Target::of(op).getClassifierLoss(ClassifierSizes::of(op));
}
ClassifierWork gradientWork(Operation *op) {
  return Target::of(op).getClassifierGradient(ClassifierSizes::of(op));
}

struct ClassifierLoss : KernelInterface::ExternalModel<ClassifierLoss, tx::ClassifierLossOp> {
  StringRef resultName(Operation *, unsigned) const { return "loss"; }
  int64_t workspaceElements(Operation *op) const { return lossWork(op).workspaceFloats(); }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto w = l.type(op->getOperand(1)).getShape();
    l.create<rt::ClassifierLossOp>(l.result(0), l.operand(0), l.operand(1), l.operand(2),
                                   l.scratch(0, "logits"), l.elements(op->getOperand(2)), w[1],
                                   w[0], cast<tx::ClassifierLossOp>(op).getIgnoreIndex(),
                                   lossWork(op).block, ClassifierSizes::of(op).padded);
    return success();
  }
};

/// The logits of the tokens at work and one block of their cotangents are scratch, with the sums of
/// 16-bit results that several blocks add to.
struct ClassifierLossGrad
    : KernelInterface::ExternalModel<ClassifierLossGrad, tx::ClassifierLossGradOp> {
  bool acceptsOperand(Operation *, unsigned operand, const View &view) const {
    return operand == 3 && view.isScalar();
  }
  StringRef resultName(Operation *, unsigned result) const {
    return ArrayRef<StringRef>{"loss", "dx", "dw"}[result];
  }
  int64_t workspaceElements(Operation *op) const { return gradientWork(op).workspaceFloats(); }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto w = l.type(op->getOperand(1)).getShape();
    int64_t rows = l.elements(op->getOperand(2));
    bool scalar = rows > 1 && l.view(op->getOperand(3)).isScalar();
    l.create<rt::ClassifierLossGradOp>(l.result(0), l.result(1), l.result(2), l.operand(3),
                                       l.operand(0), l.operand(1), l.operand(2),
                                       l.scratch(0, "dlogits"), scalar ? 0 : 1, rows, w[1], w[0],
                                       cast<tx::ClassifierLossGradOp>(op).getIgnoreIndex(),
                                       gradientWork(op).block, ClassifierSizes::of(op).padded);
    return success();
  }
};

struct TokenCount : KernelInterface::ExternalModel<TokenCount, train::TokenCountOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    l.create<CountLabelsOp>(l.result(0), l.operand(0), l.elements(op->getOperand(0)),
                            cast<train::TokenCountOp>(op).getIgnoreIndex());
    return success();
  }
};

} // namespace

void rt::attachTokenKernels(MLIRContext *context) {
  tx::EmbeddingOp::attachInterface<Embedding>(*context);
  tx::EmbeddingGradOp::attachInterface<EmbeddingGrad>(*context);
  tx::FusedLookupOp::attachInterface<FusedLookup>(*context);
  tx::TakeOp::attachInterface<Take>(*context);
  tx::TakeGradOp::attachInterface<TakeGrad>(*context);
  tx::CrossEntropyOp::attachInterface<CrossEntropy>(*context);
  tx::LogSumExpOp::attachInterface<LogSumExp>(*context);
  tx::TokenLossOp::attachInterface<TokenLoss>(*context);
  tx::CrossEntropyGradOp::attachInterface<CrossEntropyGrad>(*context);
  tx::ClassifierLossOp::attachInterface<ClassifierLoss>(*context);
  tx::ClassifierLossGradOp::attachInterface<ClassifierLossGrad>(*context);
  train::TokenCountOp::attachInterface<TokenCount>(*context);
}
