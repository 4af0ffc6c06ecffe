//===- OrderUpdates.cpp - updates in the order of their gradients -----------------------------===//
//
// An update moves to the end of its block, with the writes of what it makes, in the order of the
// ops that define the gradients. Reads stay where they are, before the first write.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
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

/// Is every result of the update written, and nothing else done with it?
bool isOnlyWritten(Operation *update) {
  return llvm::all_of(update->getUsers(), [&](Operation *user) {
    return isa<train::WriteOp>(user) && user->getBlock() == update->getBlock();
  });
}

struct OrderUpdates : partita::impl::OrderUpdatesPassBase<OrderUpdates> {
  void runOnOperation() override {
    getOperation().walk([&](Block *block) {
      SmallVector<Operation *> updates;
      for (Operation &op : *block)
        if (isa<train::AdamWOp, train::SgdOp>(op))
          updates.push_back(&op);
      if (llvm::all_of(updates, [](Operation *op) { return gradientOf(op) && isOnlyWritten(op); }))
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
    for (Operation *update : updates) {
      SmallVector<Operation *> writes;
      for (Value result : update->getResults())
        llvm::append_range(writes, result.getUsers());
      update->moveBefore(end);
      for (Operation *write : writes)
        write->moveBefore(end);
    }
    ordered += updates.size();
  }
};

} // namespace
