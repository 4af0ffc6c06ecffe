//===- DeferUses.cpp - moves uses of a sum after independent sums -----------------------------===//
//
// Walks the all-reduces of a block that may share a bucket, in order, and keeps a group of
// independent ones. Ops between the last of the group and the next all-reduce that use one of the
// group's sums move after the next one, which joins the group. An all-reduce that depends on the
// group starts a new one.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "lib/Overlap/Buckets.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "partita/Overlap/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_DEFERUSESPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

using Ops = llvm::SmallSetVector<Operation *, 8>;

/// Returns true if the op, or one nested in it, uses a result of one of these.
bool takesFrom(Operation *op, const Ops &definers) {
  return op
      ->walk([&](Operation *inner) {
        bool takes = llvm::any_of(inner->getOperands(), [&](Value operand) {
          return operand.getDefiningOp() && definers.contains(operand.getDefiningOp());
        });
        return takes ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

struct DeferUses : partita::impl::DeferUsesPassBase<DeferUses> {
  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks) {
      llvm::MapVector<overlap::Buckets::Key, SmallVector<Operation *>> byKey;
      for (auto sum : block->getOps<par::AllReduceOp>())
        if (!overlap::Buckets::isOfChunk(sum))
          byKey[overlap::Buckets::keyOf(sum)].push_back(sum);
      for (auto &[key, sums] : byKey)
        defer(sums);
    }
  }

private:
  void defer(ArrayRef<Operation *> sums) {
    Ops group;
    Operation *previous = nullptr;
    for (Operation *sum : sums) {
      if (previous && !moveBehind(group, previous, sum))
        group.clear();
      group.insert(sum);
      previous = sum;
    }
  }

  /// Moves the ops between `first` and `second` that depend on the group after `second`. Returns
  /// false and moves nothing if `second` depends on the group too, or if an op to be moved has side
  /// effects.
  bool moveBehind(const Ops &group, Operation *first, Operation *second) {
    if (!first->isBeforeInBlock(second)) // `first` moved along with another group's uses
      return false;
    Ops dependent(group.begin(), group.end()), moving;
    for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode()) {
      if (!takesFrom(op, dependent))
        continue;
      if (!isMemoryEffectFree(op))
        return false;
      dependent.insert(op);
      moving.insert(op);
    }
    if (takesFrom(second, dependent))
      return false;
    for (Operation *op : llvm::reverse(moving))
      op->moveAfter(second);
    deferred += moving.size();
    return true;
  }
};

} // namespace
