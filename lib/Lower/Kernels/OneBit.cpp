//===- OneBit.cpp - sums that send a bit per element ------------------------------------------===//
//
// A sum works in place, on its values in the arena and on errors where the program keeps them; what
// ranks send is in its workspace.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/OneBit.h"
#include "dialects/Train/Train.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Lower/Lowering.h"
#include "runtime/include/partita_rt/one_bit_shapes.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

struct OneBitTerm : KernelInterface::ExternalModel<OneBitTerm, par::OneBitTermOp> {
  StringRef resultName(Operation *, unsigned) const { return "term"; }
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned) const { return {0}; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto term = cast<par::OneBitTermOp>(op);
    l.create<rt::OneBitTermOp>(
        l.result(0), l.operand(0), l.operand(1), l.operand(2),
        term.getScale() ? l.operand(3) : Value(), l.elements(term.getResult()),
        par::ranksOver(op, term.getAxisAttr()),
        l.shared.unlessShared(train::OptimizerInterface::kBeta1, term.getBetaAttr()),
        term.getExact());
    return success();
  }
};

struct OneBitMean : KernelInterface::ExternalModel<OneBitMean, par::OneBitMeanOp> {
  StringRef resultName(Operation *, unsigned) const { return "mean"; }
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned) const { return {1}; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto mean = cast<par::OneBitMeanOp>(op);
    if (!l.samePlace(mean.getMean(), mean.getResult()))
      l.copy(l.result(0), l.view(mean.getResult()), mean.getMean());
    l.create<rt::OneBitMeanOp>(
        l.result(0), l.operand(0), l.operand(2), mean.getScale() ? l.operand(3) : Value(),
        l.elements(mean.getMean()),
        l.shared.unlessShared(train::OptimizerInterface::kBeta1, mean.getBetaAttr()),
        mean.getExact());
    return success();
  }
};

struct OneBitClip : KernelInterface::ExternalModel<OneBitClip, par::OneBitClipOp> {
  StringRef resultName(Operation *, unsigned result) const {
    return result == 0 ? "of_sums" : result == 1 ? "of_gradients" : par::OneBitClipOp::kState;
  }
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const {
    return result == 2 ? SmallVector<unsigned>{1} : SmallVector<unsigned>{};
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto clip = cast<par::OneBitClipOp>(op);
    if (!l.samePlace(clip.getTypical(), clip.getNewTypical()))
      l.copy(l.result(2), l.view(clip.getNewTypical()), clip.getTypical());
    l.create<rt::OneBitClipOp>(
        l.result(0), l.result(1), l.result(2), l.operand(0), l.operand(2),
        l.shared.unlessShared(train::OptimizerInterface::kBeta2, clip.getBetaAttr()),
        clip.getExact());
    return success();
  }
};

struct OneBitSum : KernelInterface::ExternalModel<OneBitSum, par::OneBitAllReduceOp> {
  StringRef resultName(Operation *op, unsigned result) const {
    return result < cast<par::OneBitAllReduceOp>(op).getCount() ? "sum" : "error";
  }
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const { return {result}; }
  int64_t workspaceElements(Operation *op) const { // of floats
    auto sum = cast<par::OneBitAllReduceOp>(op);
    return llvm::divideCeil(partita_rt::oneBitScratch(sum.getBlockBytes(), sum.getRankCount()), 4);
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto sum = cast<par::OneBitAllReduceOp>(op);
    FailureOr<std::string> communicator = rt::communicatorOf(op);
    if (failed(communicator))
      return failure();
    SmallVector<int64_t> counts, fullSizes, axes;
    for (Value value : sum.getValues()) {
      counts.push_back(l.elements(value));
      auto padding = par::OneBitAllReduceOp::paddingOf(l.type(value), par::MeshAttr::of(op));
      bool isPadded = padding && padding->axis;
      FailureOr<int64_t> axis = isPadded ? axisOf(op, padding->axis) : int64_t(-1);
      if (failed(axis))
        return failure();
      fullSizes.push_back(isPadded ? padding->elements : 0);
      axes.push_back(*axis);
    }
    SmallVector<Value> buffers;
    for (auto [operand, result] : llvm::zip(sum.getOperands_(), sum.getResults())) {
      if (!l.samePlace(operand, result))
        l.copy(l.buffer(result), l.view(result), operand);
      buffers.push_back(l.buffer(result));
    }
    l.create<rt::OneBitAllReduceOp>(buffers, l.buffer(sum.getT()), l.scratch(), sum.getExact(),
                                    counts, fullSizes, axes, *communicator, analysis::nameOf(op));
    return success();
  }
};

} // namespace

void rt::attachOneBitSums(MLIRContext *context) {
  par::OneBitTermOp::attachInterface<OneBitTerm>(*context);
  par::OneBitMeanOp::attachInterface<OneBitMean>(*context);
  par::OneBitClipOp::attachInterface<OneBitClip>(*context);
  par::OneBitAllReduceOp::attachInterface<OneBitSum>(*context);
}
