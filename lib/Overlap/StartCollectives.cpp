//===- StartCollectives.cpp - start and wait --------------------------------------------------===//
//
// The starts keep the order of the collectives, which is the same on every rank; each wait stands
// directly before the first use, and waits keep the order of their starts where they meet.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Zero/Zero.h"
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
      if (isa<par::AllReduceOp, zero::GatherOp, zero::ReduceScatterOp>(op))
        collectives.push_back(op);
    });
    for (Operation *op : collectives)
      split(op);
  }

private:
  /// Begins the op, and returns what completes it before `use`. A sum stands in its operands'
  /// memory, anything else in what the start fills.
  static Operation *begin(Operation *op, Operation *use) {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    auto token = builder.getI64Type();
    auto reduce = dyn_cast<par::AllReduceOp>(op);
    if (reduce) {
      auto start = par::AllReduceStartOp::create(builder, loc, token, reduce.getValues(),
                                                 reduce.getAxisAttr(), reduce.getReasonAttr());
      builder.setInsertionPoint(use);
      return par::WaitOp::create(builder, loc, op->getResultTypes(), start.getToken(),
                                 reduce.getValues());
    }
    Operation *start;
    if (auto gather = dyn_cast<zero::GatherOp>(op))
      start =
          zero::GatherStartOp::create(builder, loc, token, op->getResultTypes(), gather.getPieces(),
                                      gather.getAxisAttr(), gather.getReasonAttr());
    else
      start = zero::ReduceScatterStartOp::create(builder, loc, token, op->getResultTypes(),
                                                 op->getOperands(),
                                                 cast<zero::ReduceScatterOp>(op).getAxisAttr(),
                                                 cast<zero::ReduceScatterOp>(op).getReasonAttr());
    builder.setInsertionPoint(use);
    return zero::WaitOp::create(builder, loc, op->getResultTypes(), start->getResult(0),
                                start->getResults().drop_front());
  }

  /// The reduce-scatter behind this one: what this one reads is free where that one begins, at the
  /// latest. Its pieces may wait for their use, the wholes are what must not pile up.
  static Operation *nextScatter(Operation *op) {
    if (!isa<zero::ReduceScatterOp>(op))
      return nullptr;
    Operation *next = op->getNextNode();
    auto scatters = [](Operation *op) {
      auto collective = dyn_cast<CollectiveInterface>(op);
      return collective && collective.getCollectiveKind() == zero::ReduceScatterOp::kKind;
    };
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
    op->replaceAllUsesWith(begin(op, use));
    op->erase();
  }
};

} // namespace
