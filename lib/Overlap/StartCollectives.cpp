//===- StartCollectives.cpp - start and wait --------------------------------------------------===//
//
// The starts keep the order of the all-reduces, which is the same on every rank; each wait stands
// directly before the first use, and waits keep the order of their starts where they meet.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
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
    SmallVector<par::AllReduceOp> reduces;
    getOperation().walk([&](par::AllReduceOp op) { reduces.push_back(op); });
    for (par::AllReduceOp op : reduces)
      split(op);
  }

private:
  void split(par::AllReduceOp op) {
    Block *block = op->getBlock();
    Operation *use = block->getTerminator();
    for (Operation *user : op->getUsers())
      if (Operation *inBlock = block->findAncestorOpInBlock(*user); inBlock->isBeforeInBlock(use))
        use = inBlock;
    // Nothing in between: one call is as good as two.
    if (op->getNextNode() == use)
      return;
    OpBuilder builder(op);
    auto start =
        par::AllReduceStartOp::create(builder, op.getLoc(), builder.getI64Type(), op.getValues(),
                                      op.getAxisAttr(), op.getReasonAttr());
    builder.setInsertionPoint(use);
    auto wait = par::WaitOp::create(builder, op.getLoc(), op.getResultTypes(), start.getToken(),
                                    op.getValues());
    op.replaceAllUsesWith(wait.getResults());
    op.erase();
  }
};

} // namespace
