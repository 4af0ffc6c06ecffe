//===- GatherAgain.cpp - the backward pass gathers for itself ---------------------------------===//
//
// A gathered value (an activation, a parameter) that forward and backward ops use lives from the
// one pass to the other. Its piece is there as well, and is a rank's share of it: the backward ops
// get a gather of their own, right before the first of them, marked `again` so that nothing joins
// it with the forward pass's.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Zero/Zero.h"
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
  using GatherAgainPassBase::GatherAgainPassBase;

  void runOnOperation() override {
    bool keepsParameters = strategy == "shard-grad-op";
    SmallVector<Operation *> gathers;
    getOperation().walk([&](Operation *op) {
      if ((isa<par::AllGatherOp>(op) || (isa<zero::GatherOp>(op) && !keepsParameters)) &&
          !isBackward(op) && !op->hasAttr(kAgain))
        gathers.push_back(op);
    });
    llvm::for_each(gathers, [&](Operation *op) { split(op); });
  }

private:
  static bool isBackward(Operation *op) { return par::isBackward(op->getLoc()); }

  static constexpr llvm::StringLiteral kAgain = "again";

  void split(Operation *op) {
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
    Operation *again = builder.clone(*op);
    again->setAttr(kAgain, builder.getUnitAttr());
    again->setLoc(
        FusedLoc::get({op->getLoc()}, builder.getStringAttr("backward"), builder.getContext()));
    for (auto [before, after] : llvm::zip(op->getResults(), again->getResults()))
      before.replaceUsesWithIf(after, [](OpOperand &use) { return isBackward(use.getOwner()); });
    ++gathered;
  }
};

} // namespace
