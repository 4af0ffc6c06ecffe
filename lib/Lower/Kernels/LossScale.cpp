//===- LossScale.cpp - what a scaled loss makes of a step -------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Train/Train.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

struct Unscale : KernelInterface::ExternalModel<Unscale, amp::UnscaleOp> {
  StringRef resultName(Operation *, unsigned) const { return "unscaled"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    l.create<rt::UnscaleOp>(l.result(0), l.operand(0), l.operand(1));
    if (op->getOperand(0).getDefiningOp<train::NormOp>())
      l.create<ReportOp>("gradientNorm", l.result(0), Value());
    return success();
  }
};

struct AllFinite : KernelInterface::ExternalModel<AllFinite, amp::AllFiniteOp> {
  StringRef resultName(Operation *, unsigned) const { return "finite"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    l.create<rt::AllFiniteOp>(l.result(0), l.operand(0));
    return success();
  }
};

/// In place: nobody looks at the old values after it.
struct UpdateScale : KernelInterface::ExternalModel<UpdateScale, amp::UpdateScaleOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const { return {result}; }
  StringRef resultName(Operation *, unsigned) const { return "next"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto update = cast<amp::UpdateScaleOp>(op);
    SmallVector<Value> states;
    for (auto [before, after] : llvm::zip(op->getOperands(), op->getResults())) {
      if (!l.samePlace(before, after))
        l.copy(l.buffer(after), l.view(after), before);
      states.push_back(l.buffer(after));
    }
    l.create<rt::UpdateScaleOp>(states[0], states[1], states[2], states[3], states[4],
                                l.buffer(update.getFinite()), update.getDynamic(),
                                update.getWindow(), update.getHysteresis(), update.getConsecutive(),
                                update.getMinimum());
    return success();
  }
};

} // namespace

void rt::attachLossScale(MLIRContext *context) {
  amp::UnscaleOp::attachInterface<Unscale>(*context);
  amp::AllFiniteOp::attachInterface<AllFinite>(*context);
  amp::UpdateScaleOp::attachInterface<UpdateScale>(*context);
}
