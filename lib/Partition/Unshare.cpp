//===- Unshare.cpp - gives each user its own broadcast or constant ----------------------------===//
//
// A table of angles that is broadcast over heads and read by every layer would tie the heads of all
// layers to one another; so would a constant whose dimensions may be split. So each user gets its
// own clone; cse merges clones with the same placement in the end. Values computed from parameters
// stay shared, so that their gradients are added up before they are reduced, not after.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "lib/Partition/Flow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONUNSHAREPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns true if a result has a letter that no operand has: a constant, or a value repeated along
/// it.
bool repeats(Operation *op) {
  std::string error;
  const ShardRule *rule = par::ruleOf(op, error); // propagation reports errors
  if (!rule)
    return false;
  for (unsigned letter = 0; letter < rule->letters.size(); ++letter) {
    auto has = [&](const RulePattern &pattern) { return pattern.contains(letter); };
    if (llvm::any_of(rule->results, has) && llvm::none_of(rule->operands, has))
      return true;
  }
  return false;
}

struct PartitionUnshare : partita::impl::PartitionUnsharePassBase<PartitionUnshare> {
  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      run(function);
  }

private:
  void run(func::FuncOp function) {
    llvm::DenseSet<Value> trained; // values that depend on a parameter
    SmallVector<Operation *> shared;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      bool depends = isa<train::ReadOp>(op) || op->getNumRegions() > 0 ||
                     llvm::any_of(op->getOperands(), [&](Value v) { return trained.contains(v); });
      if (depends)
        trained.insert(op->result_begin(), op->result_end());
      else if (hasRule(op) && isPure(op) && repeats(op))
        shared.push_back(op);
    });
    for (Operation *op : llvm::reverse(shared)) // users first: each clone gets its own operands
      giveToEach(op);
  }

  /// Clones the op for each user, directly before it or before the loop that contains it.
  void giveToEach(Operation *op) {
    llvm::SetVector<Operation *> users(op->user_begin(), op->user_end());
    for (auto [i, user] : llvm::enumerate(users)) {
      Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
      if (i + 1 == users.size())
        return op->moveBefore(here);
      ++clones;
      Operation *own = OpBuilder(here).clone(*op);
      for (auto [before, after] : llvm::zip(op->getResults(), own->getResults()))
        user->replaceUsesOfWith(before, after);
    }
  }
};

} // namespace
