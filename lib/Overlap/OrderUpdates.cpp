//===- OrderUpdates.cpp - updates in the order of their gradients -----------------------------===//
//
// An update moves to the end of its block, with the pieces that are taken for it, and the writes
// and gathers of what it makes, in the order of the ops that define the gradients; what was
// gathered is written at the very end. Reads stay where they are, before the first write.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "partita/Overlap/Passes.h"

namespace partita {
#define GEN_PASS_DEF_ORDERUPDATESPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// The op of the update's block that its gradient comes from; null if it is from outside.
Operation *gradientOf(Operation *update) {
  Operation *definer = update->getOperand(1).getDefiningOp();
  return definer ? update->getBlock()->findAncestorOpInBlock(*definer) : nullptr;
}

/// What becomes of an update's results, if they are written, perhaps after they are gathered, and
/// nothing else is done with them.
struct Followers {
  SmallVector<Operation *> gathers, writes, writesOfGathered;

  bool collect(Operation *update) {
    return llvm::all_of(update->getUsers(), [&](Operation *user) {
      if (user->getBlock() != update->getBlock())
        return false;
      if (!isa<zero::GatherOp>(user))
        return isa<train::WriteOp>(user) && (writes.push_back(user), true);
      gathers.push_back(user);
      return llvm::all_of(user->getUsers(), [&](Operation *write) {
        return isa<train::WriteOp>(write) && write->getBlock() == update->getBlock() &&
               (writesOfGathered.push_back(write), true);
      });
    });
  }
};

struct OrderUpdates : partita::impl::OrderUpdatesPassBase<OrderUpdates> {
  void runOnOperation() override {
    getOperation().walk([&](Block *block) {
      SmallVector<Operation *> updates;
      for (Operation &op : *block)
        if (isa<train::AdamWOp, train::SgdOp>(op))
          updates.push_back(&op);
      if (llvm::all_of(updates,
                       [](Operation *op) { return gradientOf(op) && Followers().collect(op); }))
        order(block, updates);
    });
  }

private:
  void order(Block *block, MutableArrayRef<Operation *> updates) {
    if (updates.empty())
      return;
    llvm::sort(updates, [](Operation *a, Operation *b) {
      Operation *first = gradientOf(a), *second = gradientOf(b);
      return first == second ? a->isBeforeInBlock(b) : first->isBeforeInBlock(second);
    });
    Operation *end = block->getTerminator();
    SmallVector<Operation *> last;
    for (Operation *update : updates) {
      Followers followers;
      followers.collect(update);
      for (Value operand : update->getOperands()) // the piece that is updated, no earlier
        if (auto shard = operand.getDefiningOp<zero::ShardOp>(); shard && shard->hasOneUse())
          shard->moveBefore(end);
      update->moveBefore(end);
      for (Operation *op : llvm::concat<Operation *>(followers.writes, followers.gathers))
        op->moveBefore(end);
      llvm::append_range(last, followers.writesOfGathered);
    }
    for (Operation *write : last)
      write->moveBefore(end);
    ordered += updates.size();
  }
};

} // namespace
