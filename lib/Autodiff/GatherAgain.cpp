//===- GatherAgain.cpp - the backward pass gathers for itself ---------------------------------===//
//
// A gathered value that forward and backward ops use lives from the one pass to the other. Its
// piece is there as well, and is a rank's share of it: the backward ops get a gather of their own,
// right before the first of them, marked `again` so that nothing joins it with the forward pass's.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Autodiff/Passes.h"

namespace partita {
#define GEN_PASS_DEF_GATHERAGAINPASS
#include "partita/Autodiff/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct GatherAgain : partita::impl::GatherAgainPassBase<GatherAgain> {
  void runOnOperation() override {
    SmallVector<par::AllGatherOp> gathers;
    getOperation().walk([&](par::AllGatherOp op) {
      if (!isBackward(op) && !op.getAgain())
        gathers.push_back(op);
    });
    llvm::for_each(gathers, [&](par::AllGatherOp op) { split(op); });
  }

private:
  static bool isBackward(Operation *op) { return par::isBackward(op->getLoc()); }

  void split(par::AllGatherOp op) {
    Operation *first = nullptr;
    bool forward = false;
    for (Operation *user : op->getUsers()) {
      Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
      if (!isBackward(user))
        forward = true;
      else if (!first || inBlock->isBeforeInBlock(first))
        first = inBlock;
    }
    if (!forward || !first)
      return;
    OpBuilder builder(first);
    auto again = cast<par::AllGatherOp>(builder.clone(*op));
    again.setAgain(true);
    again->setLoc(
        FusedLoc::get({op.getLoc()}, builder.getStringAttr("backward"), builder.getContext()));
    op.getResult().replaceUsesWithIf(again.getResult(),
                                     [](OpOperand &use) { return isBackward(use.getOwner()); });
    ++gathered;
  }
};

} // namespace
