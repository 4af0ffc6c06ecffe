//===- PeelLastMicroBatch.cpp - moves the last micro-batch out of the loop --------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/IR/IRMapping.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Schedule/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PEELLASTMICROBATCHPASS
#include "partita/Schedule/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns micro-batches [first, first + count) of a batch.
Value cut(OpBuilder &builder, Location loc, Value batch, int64_t first, int64_t count) {
  auto type = cast<RankedTensorType>(batch.getType());
  par::Layout layout = par::Layout::of(type);
  SmallVector<int64_t> shape(type.getShape()), offsets(type.getRank(), 0),
      strides(type.getRank(), 1);
  shape[0] = layout.shape[0] = count;
  offsets[0] = first;
  auto part =
      RankedTensorType::get(shape, type.getElementType(), layout.encoding(builder.getContext()));
  if (part == type)
    return batch;
  return tx::SliceOp::create(builder, loc, part, batch, offsets, strides);
}

void peel(train::AccumulateOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  int64_t count = op.getCount();
  SmallVector<Value> most;
  train::AccumulateOp loop;
  IRMapping mapping;
  for (auto [batch, argument] : llvm::zip(op.getBatches(), op.getBody().getArguments())) {
    Value one = cut(builder, loc, batch, count - 1, 1);
    mapping.map(argument, tx::ReshapeOp::create(builder, loc, argument.getType(), one));
    most.push_back(count > 1 ? cut(builder, loc, batch, 0, count - 1) : Value());
  }
  if (count > 1) {
    loop = train::AccumulateOp::create(builder, loc, op.getSums().getTypes(), most);
    IRMapping copy;
    op.getBody().cloneInto(&loop.getBody(), copy);
  }
  Operation *yield = op.getBody().front().getTerminator(), *before = op->getPrevNode();
  for (Operation &inner : op.getBody().front().without_terminator())
    builder.clone(inner, mapping);
  for (auto [i, sum, part] : llvm::enumerate(op.getSums(), yield->getOperands())) {
    Value last = mapping.lookupOrDefault(part);
    // Directly after the part is made, so that users of the sum do not wait for the rest.
    OpBuilder::InsertionGuard guard(builder);
    Operation *maker = last.getDefiningOp();
    if (maker && maker->getBlock() == op->getBlock() && before->isBeforeInBlock(maker))
      builder.setInsertionPointAfter(maker);
    else // defined before the loop
      builder.setInsertionPoint(op);
    if (getElementTypeOrSelf(last.getType()) != getElementTypeOrSelf(sum.getType()))
      last = tx::CastOp::create(builder, part.getLoc(), sum.getType(), last);
    if (loop)
      last = tx::AddOp::create(builder, part.getLoc(), TypeRange{sum.getType()},
                               ValueRange{loop.getSums()[i], last})
                 ->getResult(0);
    sum.replaceAllUsesWith(last);
  }
  op.erase();
}

struct PeelLastMicroBatch : partita::impl::PeelLastMicroBatchPassBase<PeelLastMicroBatch> {
  void runOnOperation() override {
    if (failed(expectScheduled(*this, getOperation())))
      return signalPassFailure();
    SmallVector<train::AccumulateOp> loops;
    getOperation().walk([&](train::AccumulateOp op) {
      if (!op.getOrder()) // an order determines when its last micro-batch runs
        loops.push_back(op);
    });
    for (train::AccumulateOp op : loops) {
      if (op.getGrown()) {
        op.emitOpError() << "makes sums itself; fuse-accumulation comes after this pass";
        return signalPassFailure();
      }
      WalkResult moves =
          op.walk([](pipe::MoveOp move) -> WalkResult {
            return move.emitOpError()
                   << "would have a copy with the same channel; pipe-cut comes before this pass";
          });
      if (moves.wasInterrupted())
        return signalPassFailure();
      peel(op);
      ++peeled;
    }
  }
};

} // namespace
