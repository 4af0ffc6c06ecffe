//===- QuantizeScatters.cpp - exchanges chunks of 4 bits in place of reduce-scatters ----------===//
//
// A bucket's values are quantized where the reduce-scatter stands, and freed; what ranks send is summed where
// the shards are used, but before the next exchange over the axis, so that what is received does not pile up. In a
// last slot all that is received lives until its first use behind the loop.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "mlir/IR/BuiltinOps.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Zero/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_ZEROQUANTIZESCATTERSPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;

namespace {

bool isLast(Operation *op) { return op->hasAttr(train::TrainDialect::kLast); }

struct ZeroQuantizeScatters : partita::impl::ZeroQuantizeScattersPassBase<ZeroQuantizeScatters> {
  void runOnOperation() override {
    mesh = par::MeshAttr::of(getOperation());
    llvm::MapVector<Block *, SmallVector<zero::ReduceScatterOp>> byBlock;
    llvm::SetVector<AccumulateOp> loops; // with reduce-scatters in last slots
    getOperation().walk([&](zero::ReduceScatterOp op) {
      if (op.getInt4Block() && isLast(op))
        loops.insert(op->getParentOfType<AccumulateOp>());
      else if (op.getInt4Block())
        byBlock[op->getBlock()].push_back(op);
    });
    for (auto &[block, ops] : byBlock)
      expand(ops);
    for (AccumulateOp loop : loops)
      expandLast(loop);
  }

private:
  /// Writes, in place of the op, all but the sum.
  zero::ExchangeChunksOp exchange(zero::ReduceScatterOp op) {
    ++exchanged;
    OpBuilder builder(op);
    uint64_t block = *op.getInt4Block();
    auto typeOf = [&](bool received) {
      return zero::chunksType(op.getShards().getTypes(), op.getAxisAttr(),
                              static_cast<int64_t>(block), mesh, received);
    };
    auto chunks = zero::QuantizeChunksOp::create(builder, op.getLoc(), typeOf(/*received=*/false),
                                                 op.getValues(), op.getAxisAttr(), block);
    auto made = zero::ExchangeChunksOp::create(builder, op.getLoc(), typeOf(/*received=*/true),
                                               chunks, op.getAxisAttr(), op.getReasonAttr());
    chunks->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    return made;
  }

  static zero::SumChunksOp sum(OpBuilder &builder, zero::ReduceScatterOp op, Value received) {
    return zero::SumChunksOp::create(builder, op.getLoc(), op.getShards().getTypes(), received,
                                     op.getAxisAttr(), *op.getInt4Block());
  }

  /// The first op of the block that uses one of the values; null if none does.
  static Operation *firstUse(ValueRange values) {
    Operation *first = nullptr;
    for (Value value : values)
      if (Operation *use = analysis::firstUseOf(value);
          use && (!first || use->isBeforeInBlock(first)))
        first = use;
    return first;
  }

  /// Of reduce-scatters of one block, in order.
  void expand(ArrayRef<zero::ReduceScatterOp> ops) {
    SmallVector<zero::SumChunksOp> sums;
    SmallVector<zero::ExchangeChunksOp> exchanges;
    for (zero::ReduceScatterOp op : ops) {
      OpBuilder builder(op);
      zero::ExchangeChunksOp made = exchanges.emplace_back(exchange(op));
      sums.push_back(sum(builder, op, made));
      op->replaceAllUsesWith(sums.back());
      op->erase();
    }
    for (auto [number, made] : llvm::enumerate(sums)) {
      Operation *place = firstUse(made.getShards());
      for (zero::ExchangeChunksOp next : ArrayRef(exchanges).drop_front(number + 1))
        if (next.getAxisAttr() == made.getAxisAttr()) {
          if (!place || next->isBeforeInBlock(place))
            place = next;
          break;
        }
      if (place)
        made->moveBefore(place);
    }
  }

  /// A reduce-scatter of a last slot, and its results behind the loop.
  struct Begun {
    zero::ReduceScatterOp op;
    SmallVector<Value> behind;
    unsigned number; ///< of what is received, among the loop's last values
  };

  /// The loop hands out what is received, which is summed behind it.
  void expandLast(AccumulateOp loop) {
    std::vector<SmallVector<Value>> last(loop->getNumRegions());
    SmallVector<Begun> begun;
    SmallVector<std::pair<Value, unsigned>> others; // values behind the loop, last values of it now
    unsigned number = 0;
    auto isMarked = [](Operation *op) {
      auto scatter = dyn_cast_or_null<zero::ReduceScatterOp>(op);
      return scatter && scatter.getInt4Block() && isLast(op);
    };
    for (Region &region : loop->getRegions()) {
      SmallVector<Value> &ofPass = last[loop.numberOf(region)];
      for (OpOperand &handed : region.front().getTerminator()->getOpOperands())
        if (OpResult behind = loop.getHandingOut(handed);
            behind && !isMarked(handed.get().getDefiningOp())) {
          others.push_back({behind, number++});
          ofPass.push_back(handed.get());
        }
      for (Operation &op : llvm::make_early_inc_range(region.front()))
        if (isMarked(&op)) {
          auto scatter = cast<zero::ReduceScatterOp>(op);
          Begun &one = begun.emplace_back(Begun{scatter, {}, number++});
          for (Value made : op.getResults())
            one.behind.push_back(behindRegion(made));
          ofPass.push_back(exchange(scatter));
        }
    }
    OpBuilder builder(loop);
    AccumulateOp made = loop.withLast(builder, last);
    for (auto [behind, index] : others)
      behind.replaceAllUsesWith(made.getLast()[index]);
    for (Begun &one : begun) {
      Operation *use = firstUse(one.behind);
      OpBuilder at(use ? use : loop.getOperation());
      zero::SumChunksOp summed = sum(at, one.op, made.getLast()[one.number]);
      for (auto [before, after] : llvm::zip_equal(one.behind, summed.getShards()))
        before.replaceAllUsesWith(after);
      one.op->erase();
    }
    loop.erase();
  }

  par::MeshAttr mesh;
};

} // namespace
