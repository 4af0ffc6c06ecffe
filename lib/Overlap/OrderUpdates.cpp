//===- OrderUpdates.cpp - updates in the order of their gradients -----------------------------===//
//
// Moves updates to the end of their block, with the shards that they take and the writes and
// gathers of their results, in the order of the ops that define the gradients, or that reduce them
// in slots of a loop. Gathered values are written at the very end. Reads stay where they are,
// before the first write.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "partita/Overlap/Passes.h"

namespace partita {
#define GEN_PASS_DEF_ORDERUPDATESPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns the op of the update's block that its gradient comes from; null if that is outside.
Operation *gradientOf(Operation *update) {
  Operation *definer = update->getOperand(1).getDefiningOp();
  return definer ? update->getBlock()->findAncestorOpInBlock(*definer) : nullptr;
}

/// What follows an update, if its results are only written, perhaps after a gather.
struct Followers {
  SmallVector<Operation *> gathers, writes, writesOfGathered;

  bool collect(Operation *update) {
    return llvm::all_of(update->getUsers(), [&](Operation *user) {
      if (user->getBlock() != update->getBlock())
        return false;
      if (isa<train::WriteOp>(user))
        return writes.push_back(user), true;
      return isa<zero::GatherOp, offload::ToHostOp>(user) && collectMoved(user, gathers);
    });
  }

private:
  /// Collects a gather or a copy to the host; the result of a gather may be copied too.
  bool collectMoved(Operation *move, SmallVector<Operation *> &list) {
    list.push_back(move);
    return llvm::all_of(move->getUsers(), [&](Operation *user) {
      if (user->getBlock() != move->getBlock())
        return false;
      if (isa<zero::GatherOp>(user) && isa<zero::GatherOp>(move)) // over another axis
        return collectMoved(user, list);
      if (isa<offload::ToHostOp>(user) && isa<zero::GatherOp>(move))
        return collectMoved(user, writesOfGathered);
      return isa<train::WriteOp>(user) && (writesOfGathered.push_back(user), true);
    });
  }
};

struct OrderUpdates : partita::impl::OrderUpdatesPassBase<OrderUpdates> {
  void runOnOperation() override {
    getOperation().walk([&](Block *block) {
      SmallVector<Operation *> updates;
      for (Operation &op : *block)
        if (isa<train::OptimizerInterface>(op))
          updates.push_back(&op);
      if (llvm::all_of(updates,
                       [](Operation *op) { return gradientOf(op) && Followers().collect(op); }))
        order(block, updates);
    });
  }

private:
  /// Moves along a shard taken for the update, and a copy to the device made for it.
  static void bringAlong(Value operand, Operation *before) {
    Operation *op = operand.getDefiningOp();
    if (!isa_and_nonnull<zero::ShardOp, offload::ToDeviceOp>(op) || !op->hasOneUse())
      return;
    bringAlong(op->getOperand(0), before);
    op->moveBefore(before);
  }

  /// A state of which the update takes a shard may be overwritten in full, by what another op computes of it: that comes after the update.
  static void bringOverwrites(Value operand, Operation *before) {
    Value full = operand;
    while (auto shard = full.getDefiningOp<zero::ShardOp>())
      full = shard.getValue();
    auto read = full.getDefiningOp<train::ReadOp>();
    if (!read || full == operand)
      return;
    SmallVector<std::pair<Operation *, Operation *>> overwrites;
    for (Operation *user : read->getUsers())
      for (Operation *next : user->getUsers())
        if (auto write = dyn_cast<train::WriteOp>(next);
            write && write.getSymbol() == read.getSymbol() && user->getBlock() == read->getBlock())
          overwrites.push_back({user, write});
    for (auto [op, write] : overwrites) {
      op->moveBefore(before);
      write->moveBefore(before);
    }
  }

  /// For a gradient reduced in a slot of a loop, returns when, among all last values of the loop.
  static unsigned readyIn(Operation *update) {
    Value gradient = update->getOperand(1), inside = handedOut(gradient);
    auto loop = gradient.getDefiningOp<train::AccumulateOp>();
    if (!loop || inside == gradient)
      return 0;
    Operation *definer = inside.getDefiningOp();
    unsigned time = 1;
    for (unsigned pass : loop.getPassesByEnd()) {
      Block &block = loop->getRegion(pass).front();
      for (Operation &op : block.without_terminator()) {
        if (&op == definer)
          return time;
        time += op.hasAttr(train::TrainDialect::kLast);
      }
    }
    return 0;
  }

  void order(Block *block, MutableArrayRef<Operation *> updates) {
    if (updates.empty())
      return;
    llvm::DenseMap<Operation *, unsigned> times;
    for (Operation *update : updates)
      times[update] = readyIn(update);
    llvm::sort(updates, [&](Operation *a, Operation *b) {
      Operation *first = gradientOf(a), *second = gradientOf(b);
      if (first != second)
        return first->isBeforeInBlock(second);
      return times[a] == times[b] ? a->isBeforeInBlock(b) : times[a] < times[b];
    });
    Operation *end = block->getTerminator();
    SmallVector<Operation *> last;
    for (Operation *update : updates) {
      Followers followers;
      followers.collect(update);
      for (Value operand : update->getOperands()) // directly before the update
        bringAlong(operand, end);
      update->moveBefore(end);
      for (Operation *op : llvm::concat<Operation *>(followers.writes, followers.gathers))
        op->moveBefore(end);
      for (Value operand : update->getOperands())
        bringOverwrites(operand, end);
      llvm::append_range(last, followers.writesOfGathered);
    }
    for (Operation *write : last)
      write->moveBefore(end);
    ordered += updates.size();
  }
};

} // namespace
