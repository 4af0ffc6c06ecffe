//===- ShardGradients.cpp - micro-batches add up pieces of gradients -------------------------===//
//
// A sum over micro-batches that is only reduced and scattered: each micro-batch's part is, and the
// pieces are added up. The order of the two sums changes, and with it the rounding.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "partita/Zero/Passes.h"

namespace partita {
#define GEN_PASS_DEF_ZEROSHARDGRADIENTSPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct ZeroShardGradients : partita::impl::ZeroShardGradientsPassBase<ZeroShardGradients> {
  using ZeroShardGradientsPassBase::ZeroShardGradientsPassBase;

  void runOnOperation() override {
    if (stage < 2)
      return;
    SmallVector<train::AccumulateOp> loops;
    getOperation().walk([&](train::AccumulateOp loop) { loops.push_back(loop); });
    for (train::AccumulateOp loop : loops)
      for (OpResult sum : loop->getResults())
        moveInto(loop, sum);
  }

private:
  void moveInto(train::AccumulateOp loop, OpResult sum) {
    if (!sum.hasOneUse())
      return;
    auto scatter = dyn_cast<zero::ReduceScatterOp>(*sum.getUsers().begin());
    if (!scatter || scatter.getValues().size() != 1)
      return;
    Operation *yield = loop.getBody().front().getTerminator();
    OpBuilder builder(yield);
    auto inside = cast<zero::ReduceScatterOp>(builder.clone(*scatter));
    inside->setOperand(0, yield->getOperand(sum.getResultNumber()));
    yield->setOperand(sum.getResultNumber(), inside.getPieces()[0]);
    sum.setType(inside.getPieces()[0].getType());
    scatter.getPieces()[0].replaceAllUsesWith(sum);
    scatter.erase();
    ++sharded;
  }
};

} // namespace
