//===- StartCollectives.cpp - start and wait --------------------------------------------------===//
//
// The starts keep the order of the collectives, which is the same on every rank; each wait stands
// directly before the first use, and waits keep the order of their starts where they meet.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Interfaces.h"
#include "partita/Overlap/Passes.h"

namespace partita {
#define GEN_PASS_DEF_STARTCOLLECTIVESPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct StartCollectives : partita::impl::StartCollectivesPassBase<StartCollectives> {
  void runOnOperation() override {
    SmallVector<Operation *> collectives;
    getOperation().walk([&](Operation *op) {
      if (isa<CollectiveInterface>(op) && isa<StartableInterface>(op))
        collectives.push_back(op);
    });
    for (Operation *op : collectives)
      split(op);
  }

private:
  /// The reduce-scatter behind this one: what this one reads is free where that one begins, at the
  /// latest. Its shards may wait for their use, the full values are what must not pile up.
  static Operation *nextScatter(Operation *op) {
    auto scatters = [](Operation *op) {
      auto collective = dyn_cast<CollectiveInterface>(op);
      return collective && collective.getCollectiveKind() == CollectiveKind::ReduceScatter;
    };
    if (!scatters(op))
      return nullptr;
    Operation *next = op->getNextNode();
    while (next && !scatters(next))
      next = next->getNextNode();
    return next;
  }

  void split(Operation *op) {
    Block *block = op->getBlock();
    Operation *use = block->getTerminator();
    for (Operation *user : op->getUsers())
      if (Operation *inBlock = block->findAncestorOpInBlock(*user); inBlock->isBeforeInBlock(use))
        use = inBlock;
    if (Operation *next = nextScatter(op); next && next->isBeforeInBlock(use))
      use = next;
    // Nothing in between: one call is as good as two.
    if (op->getNextNode() == use)
      return;
    ++started;
    OpBuilder builder(op);
    auto startable = cast<StartableInterface>(op);
    auto start = cast<AsyncStartInterface>(startable.buildStart(builder));
    builder.setInsertionPoint(use);
    op->replaceAllUsesWith(startable.buildWait(builder, start));
    op->erase();
  }
};

} // namespace
