//===- GatherAgain.cpp - the backward pass gathers for itself ---------------------------------===//
//
// A gathered value (an activation, a parameter) that forward and backward ops use lives from the
// one pass to the other. Its piece is there as well, and is a rank's share of it: the backward ops
// get a gather of their own, right before the first of them, marked `again` so that nothing joins
// it with the forward pass's, unless the first of them comes before the backward pass needs any
// other parameter (the classifier's weights). So is what norms made of a gathered activation (of a
// block whose branches run side by side): the backward pass computes it again from its own gather.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Autodiff/Passes.h"

namespace partita {
#define GEN_PASS_DEF_GATHERAGAINPASS
#include "partita/Autodiff/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using provenance::isBackward;

namespace {

struct GatherAgain : partita::impl::GatherAgainPassBase<GatherAgain> {
  using GatherAgainPassBase::GatherAgainPassBase;

  void runOnOperation() override {
    if (!llvm::is_contained({"none", "no-shard", "shard-grad-op", "full-shard"},
                            strategy.getValue())) {
      getOperation().emitError()
          << "fsdp strategy '" << strategy
          << "' is unknown; known: none, no-shard, shard-grad-op, full-shard";
      return signalPassFailure();
    }
    auto named = analysis::parametersNamed(getOperation(), keep, "keep-gathered");
    if (failed(named))
      return signalPassFailure();
    kept = std::move(*named);
    SmallVector<Operation *> activations, parameters;
    bool gathersAny = false;
    getOperation().walk([&](Operation *op) {
      gathersAny |= isa<zero::GatherOp>(op);
      if (isBackward(op) || op->hasAttr(kAgain))
        return;
      if (isa<par::AllGatherOp>(op))
        activations.push_back(op);
      if (isa<zero::GatherOp>(op) && !isKept(op))
        parameters.push_back(op);
    });
    if (!kept.empty() && !gathersAny) {
      getOperation().emitError() << "keep-gathered: no parameter is gathered for its use; with "
                                    "--zero-stage 3 those above --persistence-threshold are";
      return signalPassFailure();
    }
    // What is computed again reads parameters in the backward pass.
    llvm::for_each(activations, [&](Operation *op) { split(op); });
    llvm::for_each(parameters, [&](Operation *op) { split(op); });
  }

private:

  /// A gather of one parameter's pieces, perhaps through `f`s of other axes.
  bool isKept(Operation *gather) {
    if (strategy == "shard-grad-op" || kept.empty())
      return strategy == "shard-grad-op";
    FlatSymbolRefAttr name = train::parameterReadBy(gather->getOperand(0));
    auto parameter = name ? SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(gather, name)
                          : train::ParameterOp();
    return parameter && kept.contains(parameter);
  }

  llvm::SetVector<train::ParameterOp> kept;

  static constexpr llvm::StringLiteral kAgain = "again";

  /// Does a backward op of a block use a gathered parameter?
  static bool needsParameter(Operation *op) {
    return isBackward(op) && llvm::any_of(op->getOperands(), [](Value operand) {
             auto gather = operand.getDefiningOp<zero::GatherOp>();
             return gather && train::parameterReadBy(gather->getOperand(0));
           });
  }

  /// Is the gathered parameter still there when the backward pass comes to it?
  bool meets(Operation *gather, Operation *first) const {
    Operation *last = nullptr;
    for (Operation *user : gather->getUsers())
      if (Operation *use = gather->getBlock()->findAncestorOpInBlock(*user);
          use && !isBackward(user) && (!last || last->isBeforeInBlock(use)))
        last = use;
    return !always && isa<zero::GatherOp>(gather) && last &&
           analysis::usesMeet(last, first, needsParameter);
  }

  /// Splits a gather, with what is computed again of it, where both passes use it.
  void split(Operation *op) {
    SmallVector<Operation *> made{op};
    bool forward = false;
    for (Operation *user : op->getUsers()) {
      forward |= !isBackward(user);
      if (isa<par::AllGatherOp>(op) && isCheap(user, op) && firstBackward(user) &&
          !llvm::is_contained(made, user))
        made.push_back(user);
    }
    llvm::sort(made, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    Operation *first = nullptr;
    for (Operation *each : made)
      if (Operation *user = firstBackward(each); user && (!first || user->isBeforeInBlock(first)))
        first = user;
    if (!forward || !first || meets(op, first))
      return;
    OpBuilder builder(first);
    IRMapping mapping;
    for (Operation *each : made) {
      Operation *again = builder.clone(*each, mapping);
      if (each == op)
        again->setAttr(kAgain, builder.getUnitAttr());
      again->setLoc(
          provenance::backward(each->getLoc()));
      for (auto [before, after] : llvm::zip(each->getResults(), again->getResults()))
        before.replaceUsesWithIf(after, [&](OpOperand &use) {
          return isBackward(use.getOwner()) && use.getOwner() != again;
        });
    }
    ++gathered;
  }

  /// The first of the backward ops that use an op, or of those in its block that contain them.
  static Operation *firstBackward(Operation *op) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers())
      if (isBackward(user))
        if (Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
            !first || inBlock->isBeforeInBlock(first))
          first = inBlock;
    return first;
  }

  /// Is a forward op made of a gathered value and of what is small beside it, and no product?
  static bool isCheap(Operation *op, Operation *gather) {
    std::string error;
    if (isBackward(op) || !isa<ShardInterface>(op) || !isPure(op) ||
        op->getBlock() != gather->getBlock())
      return false;
    auto rule = par::ruleOf(op, error);
    if (!rule ||
        llvm::any_of(rule->letters, [](const RuleLetter &letter) { return letter.summed; }))
      return false;
    int64_t others = 0;
    for (Value operand : op->getOperands())
      others += operand.getDefiningOp() == gather ? 0 : bytesOf(operand.getType());
    return others < bytesOf(gather->getResult(0).getType());
  }
};

} // namespace
