//===- StartCollectives.cpp - start and wait --------------------------------------------------===//
//
// Starts keep the order of the collectives, which is the same on every rank. Each wait goes
// directly before the first use, and waits that meet keep the order of their starts. A collective
// started in a pass's last slot is waited for after the loop, which hands out the token.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Start.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "partita/Overlap/Passes.h"

namespace partita {
#define GEN_PASS_DEF_STARTCOLLECTIVESPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;

namespace {

struct StartCollectives : partita::impl::StartCollectivesPassBase<StartCollectives> {
  void runOnOperation() override {
    SmallVector<Operation *> collectives;
    SmallVector<AccumulateOp> loops; // that have collectives in last slots
    if (getOperation().walk(checkStarts).wasInterrupted())
      return signalPassFailure();
    getOperation().walk([&](Operation *op) {
      if (auto loop = dyn_cast<AccumulateOp>(op); loop && !loop.getLast().empty())
        loops.push_back(loop);
      if (isStartable(op) && !op->hasAttr(train::TrainDialect::kLast))
        collectives.push_back(op);
    });
    for (Operation *op : collectives)
      split(op);
    for (AccumulateOp loop : loops)
      splitLast(loop);
  }

private:
  /// A mark of how the sum is to be rounded has no place on a start.
  static WalkResult checkStarts(zero::ReduceScatterOp op) {
    if (!op.getInt4Block())
      return WalkResult::advance();
    op.emitError() << "is marked to send int4 blocks, which starts as an exchange of its own; run "
                      "zero-quantize-scatters before start-collectives";
    return WalkResult::interrupt();
  }

  static bool isStartable(Operation *op) {
    return isa_and_nonnull<CollectiveInterface>(op) && isa<StartableInterface>(op);
  }

  /// Returns the next reduce-scatter over the same axis, before which it is waited for at the latest,
  /// to free what it reads. Its shards could wait for their use, but full values must not pile up.
  static Operation *nextScatter(Operation *op) {
    if (cast<CollectiveInterface>(op).getCollectiveKind() != CollectiveKind::ReduceScatter)
      return nullptr;
    Operation *next = op->getNextNode();
    while (next &&
           (next->getName() != op->getName() || next->getAttr("axis") != op->getAttr("axis")))
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
    // With nothing in between, splitting gains nothing.
    if (op->getNextNode() == use)
      return;
    ++started;
    OpBuilder builder(op);
    auto startable = cast<StartableInterface>(op);
    AsyncStartInterface start = buildStartOf(startable, builder);
    builder.setInsertionPoint(use);
    op->replaceAllUsesWith(startable.buildWait(builder, start));
    op->erase();
  }

  /// A collective of a last slot, what it makes after the loop, and where the loop hands out the
  /// token and everything that is filled.
  struct Begun {
    Operation *op = nullptr;
    AsyncStartInterface start;
    SmallVector<Value> behind;
    unsigned first = 0, count = 0;
  };

  void splitLast(AccumulateOp loop) {
    std::vector<SmallVector<Value>> last(loop->getNumRegions());
    SmallVector<Begun> begun;
    SmallVector<std::pair<Value, unsigned>> others; // values after the loop, last values of it now
    unsigned number = 0;
    auto add = [&](Region &region, Value value) {
      last[loop.numberOf(region)].push_back(value);
      return number++;
    };
    for (Region &region : loop->getRegions()) {
      for (OpOperand &handed : region.front().getTerminator()->getOpOperands())
        if (OpResult behind = loop.getHandingOut(handed);
            behind && !isStartable(handed.get().getDefiningOp()))
          others.push_back({behind, add(region, handed.get())});
      for (Operation &op : llvm::make_early_inc_range(region.front()))
        if (isStartable(&op) && op.hasAttr(train::TrainDialect::kLast)) {
          Begun &one = begun.emplace_back(begin(&op));
          one.first = number;
          add(region, one.start.getToken());
          for (Value filled : one.start.getFilled())
            add(region, filled);
          one.count = number - one.first;
        }
    }
    OpBuilder builder(loop);
    AccumulateOp made = loop.withLast(builder, last);
    for (auto [behind, index] : others)
      behind.replaceAllUsesWith(made.getLast()[index]);
    for (Begun &one : begun)
      awaitBehind(made, one);
    loop.erase();
  }

  Begun begin(Operation *op) {
    ++started;
    Begun result;
    result.op = op;
    OpBuilder builder(op);
    result.start = buildStartOf(cast<StartableInterface>(op), builder);
    for (Value made : op->getResults())
      result.behind.push_back(behindRegion(made));
    return result;
  }

  static void awaitBehind(AccumulateOp loop, Begun &begun) {
    Block *block = loop->getBlock();
    Operation *use = block->getTerminator();
    for (Value value : begun.behind)
      for (Operation *user : value.getUsers())
        if (Operation *inBlock = block->findAncestorOpInBlock(*user); inBlock->isBeforeInBlock(use))
          use = inBlock;
    OpBuilder builder(use);
    Operation *wait = cast<StartableInterface>(begun.op).buildWait(builder, begun.start);
    wait->setOperands(loop.getLast().slice(begun.first, begun.count));
    for (auto [before, after] : llvm::zip(begun.behind, wait->getResults()))
      before.replaceAllUsesWith(after);
    begun.op->erase();
  }
};

} // namespace
