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
#include "partita/Analysis/Parameters.h"
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
    auto named = analysis::parametersNamed(getOperation(), keep, "keep-gathered");
    if (failed(named))
      return signalPassFailure();
    kept = std::move(*named);
    bool gathers = getOperation()
                       .walk([](zero::GatherOp) { return WalkResult::interrupt(); })
                       .wasInterrupted();
    if (!kept.empty() && !gathers) {
      getOperation().emitError() << "keep-gathered: no parameter is gathered for its use; with "
                                    "--zero-stage 3 they are";
      return signalPassFailure();
    }
    SmallVector<Operation *> found;
    getOperation().walk([&](Operation *op) {
      bool gatherAgain = isa<par::AllGatherOp>(op) || (isa<zero::GatherOp>(op) && !isKept(op));
      if (gatherAgain && !isBackward(op) && !op->hasAttr(kAgain))
        found.push_back(op);
    });
    llvm::for_each(found, [&](Operation *op) { split(op); });
  }

private:
  static bool isBackward(Operation *op) { return par::isBackward(op->getLoc()); }

  /// A gather of one parameter's pieces, perhaps through `f`s of other axes.
  bool isKept(Operation *gather) {
    Operation *op = gather;
    while (op && op->getNumOperands() == 1 && !isa<train::ReadOp>(op))
      op = op->getOperand(0).getDefiningOp();
    auto read = dyn_cast_or_null<train::ReadOp>(op);
    auto parameter =
        read ? SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(read, read.getSymbolAttr())
             : train::ParameterOp();
    return strategy == "shard-grad-op" || (parameter && kept.contains(parameter));
  }

  llvm::SetVector<train::ParameterOp> kept;

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
