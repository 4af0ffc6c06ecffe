//===- ShardGradients.cpp - micro-batches add up shards of gradients --------------------------===//
//
// If a sum over micro-batches is only reduce-scattered, each micro-batch's gradient is
// reduce-scattered instead and the shards are added up. This swaps the order of the two sums, and
// so changes the rounding.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "lib/Zero/SyncEach.h"
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
    if (stage < 0 || stage > 3) {
      getOperation().emitError() << "stage=" << stage.getValue() << ", expected 0, 1, 2 or 3";
      return signalPassFailure();
    }
    if (failed(zero::checkSyncEach(getOperation(), syncEach)))
      return signalPassFailure();
    if (stage < 2 || syncEach == "step")
      return;
    SmallVector<train::AccumulateOp> loops;
    getOperation().walk([&](train::AccumulateOp loop) { loops.push_back(loop); });
    for (train::AccumulateOp loop : loops)
      for (OpResult sum : loop->getResults())
        while (moveInto(loop, sum)) // once per axis
          ++sharded;
  }

private:
  /// Moves the reduce-scatter of the sum, if that is all that uses it, into the loop.
  static bool moveInto(train::AccumulateOp loop, OpResult sum) {
    if (!sum.hasOneUse())
      return false;
    // A sum in 32 bits is rounded before it is communicated.
    auto cast = dyn_cast<tx::CastOp>(*sum.getUsers().begin());
    Value exchanged = cast ? cast.getResult() : Value(sum);
    if (!exchanged.hasOneUse())
      return false;
    auto scatter = dyn_cast<zero::ReduceScatterOp>(*exchanged.getUsers().begin());
    if (!scatter || scatter.getValues().size() != 1)
      return false;
    OpOperand &summand = loop.getPart(sum.getResultNumber());
    OpBuilder builder(summand.getOwner());
    auto inside = llvm::cast<zero::ReduceScatterOp>(builder.clone(*scatter));
    Value part = summand.get();
    if (part.getType() != exchanged.getType()) { // round one micro-batch's as well
      builder.setInsertionPoint(inside);
      part = tx::CastOp::create(builder, provenance::backward(part.getLoc()), exchanged.getType(),
                                part);
    }
    inside->setOperand(0, part);
    summand.set(inside.getShards()[0]);
    auto shard = llvm::cast<RankedTensorType>(inside.getShards()[0].getType());
    sum.setType(shard.clone(getElementTypeOrSelf(sum.getType())));
    if (cast) { // now rounds the loop's result
      cast->moveAfter(scatter);
      cast.getResult().setType(shard);
      scatter.getShards()[0].replaceAllUsesWith(cast.getResult());
    } else {
      scatter.getShards()[0].replaceAllUsesWith(sum);
    }
    scatter.erase();
    return true;
  }
};

} // namespace
