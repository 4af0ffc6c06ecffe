//===- RowWise.cpp - normalization and softmax over the last dimension ------------------------===//

#include "dialects/Tx/Tx.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

int64_t widthOf(Lowering &l, Value tensor) { return l.type(tensor).getShape().back(); }
int64_t rowsOf(Lowering &l, Value tensor) { return l.elements(tensor) / widthOf(l, tensor); }

struct LayerNorm : KernelInterface::ExternalModel<LayerNorm, tx::LayerNormOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const {
    return result == 0 ? SmallVector<unsigned>{0} : SmallVector<unsigned>{};
  }
  bool needsResult(Operation *, unsigned result) const { return result == 0; }
  StringRef resultName(Operation *, unsigned result) const {
    return ArrayRef<StringRef>{"", "mean", "rstd"}[result];
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto norm = cast<tx::LayerNormOp>(op);
    l.create<LayerNormForwardOp>(l.result(0), l.resultOrNull(1), l.resultOrNull(2), l.operand(0),
                                 l.operand(1), l.operand(2), rowsOf(l, norm.getX()),
                                 widthOf(l, norm.getX()), norm.getEpsilon());
    return success();
  }
};

struct LayerNormGrad : KernelInterface::ExternalModel<LayerNormGrad, tx::LayerNormGradOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const {
    return result == 0 ? SmallVector<unsigned>{4} : SmallVector<unsigned>{};
  }
  bool needsResult(Operation *, unsigned result) const { return result == 0; }
  StringRef resultName(Operation *, unsigned result) const {
    return ArrayRef<StringRef>{"dx", "dw", "db", "dx_sums"}[result];
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto grad = cast<tx::LayerNormGradOp>(op);
    l.create<LayerNormBackwardOp>(l.result(0), l.resultOrNull(1), l.resultOrNull(2),
                                  l.resultOrAbsent(3), l.operand(4), l.operand(0), l.operand(1),
                                  l.operand(2), l.operand(3), rowsOf(l, grad.getX()),
                                  widthOf(l, grad.getX()), false);
    return success();
  }
};

/// Adds to the residual branch's cotangent, in its memory where it dies.
struct LayerNormGradAdd : KernelInterface::ExternalModel<LayerNormGradAdd, tx::LayerNormGradAddOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const {
    return result == 0 ? SmallVector<unsigned>{5} : SmallVector<unsigned>{};
  }
  bool needsResult(Operation *, unsigned result) const { return result == 0; }
  StringRef resultName(Operation *, unsigned result) const {
    return ArrayRef<StringRef>{"dx", "dw", "db", "dx_sums"}[result];
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto grad = cast<tx::LayerNormGradAddOp>(op);
    if (!l.samePlace(grad.getDx(), grad.getAdd()))
      l.copy(l.result(0), l.view(grad.getDx()), grad.getAdd());
    l.create<LayerNormBackwardOp>(l.result(0), l.resultOrNull(1), l.resultOrNull(2),
                                  l.resultOrAbsent(3), l.operand(4), l.operand(0), l.operand(1),
                                  l.operand(2), l.operand(3), rowsOf(l, grad.getX()),
                                  widthOf(l, grad.getX()), true);
    return success();
  }
};

struct RmsNorm : KernelInterface::ExternalModel<RmsNorm, tx::RmsNormOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const {
    return result == 0 ? SmallVector<unsigned>{0} : SmallVector<unsigned>{};
  }
  bool needsResult(Operation *, unsigned result) const { return result == 0; }
  StringRef resultName(Operation *, unsigned result) const { return result == 0 ? "" : "rstd"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto norm = cast<tx::RmsNormOp>(op);
    l.create<RmsNormForwardOp>(l.result(0), l.resultOrNull(1), l.operand(0), l.operand(1),
                               rowsOf(l, norm.getX()), widthOf(l, norm.getX()), norm.getEpsilon());
    return success();
  }
};

struct RmsNormGrad : KernelInterface::ExternalModel<RmsNormGrad, tx::RmsNormGradOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const {
    return result == 0 ? SmallVector<unsigned>{3} : SmallVector<unsigned>{};
  }
  bool needsResult(Operation *, unsigned result) const { return result == 0; }
  StringRef resultName(Operation *, unsigned result) const { return result == 0 ? "dx" : "dw"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto grad = cast<tx::RmsNormGradOp>(op);
    l.create<RmsNormBackwardOp>(l.result(0), l.resultOrNull(1), l.operand(3), l.operand(0),
                                l.operand(1), l.operand(2), rowsOf(l, grad.getX()),
                                widthOf(l, grad.getX()), false);
    return success();
  }
};

/// Adds to the residual branch's cotangent, in its memory where it dies.
struct RmsNormGradAdd : KernelInterface::ExternalModel<RmsNormGradAdd, tx::RmsNormGradAddOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const {
    return result == 0 ? SmallVector<unsigned>{4} : SmallVector<unsigned>{};
  }
  bool needsResult(Operation *, unsigned result) const { return result == 0; }
  StringRef resultName(Operation *, unsigned result) const { return result == 0 ? "dx" : "dw"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto grad = cast<tx::RmsNormGradAddOp>(op);
    if (!l.samePlace(grad.getDx(), grad.getAdd()))
      l.copy(l.result(0), l.view(grad.getDx()), grad.getAdd());
    l.create<RmsNormBackwardOp>(l.result(0), l.resultOrNull(1), l.operand(3), l.operand(0),
                                l.operand(1), l.operand(2), rowsOf(l, grad.getX()),
                                widthOf(l, grad.getX()), true);
    return success();
  }
};

struct Softmax : KernelInterface::ExternalModel<Softmax, tx::SoftmaxOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned) const { return {0}; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    l.create<SoftmaxForwardOp>(l.result(0), l.operand(0), rowsOf(l, op->getOperand(0)),
                               widthOf(l, op->getOperand(0)));
    return success();
  }
};

struct SoftmaxGrad : KernelInterface::ExternalModel<SoftmaxGrad, tx::SoftmaxGradOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned) const { return {1}; }
  StringRef resultName(Operation *, unsigned) const { return "dx"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    l.create<SoftmaxBackwardOp>(l.result(0), l.operand(1), l.operand(0),
                                rowsOf(l, op->getOperand(0)), widthOf(l, op->getOperand(0)));
    return success();
  }
};

} // namespace

void rt::attachRowKernels(MLIRContext *context) {
  tx::LayerNormOp::attachInterface<LayerNorm>(*context);
  tx::LayerNormGradOp::attachInterface<LayerNormGrad>(*context);
  tx::LayerNormGradAddOp::attachInterface<LayerNormGradAdd>(*context);
  tx::RmsNormOp::attachInterface<RmsNorm>(*context);
  tx::RmsNormGradOp::attachInterface<RmsNormGrad>(*context);
  tx::RmsNormGradAddOp::attachInterface<RmsNormGradAdd>(*context);
  tx::SoftmaxOp::attachInterface<Softmax>(*context);
  tx::SoftmaxGradOp::attachInterface<SoftmaxGrad>(*context);
}
