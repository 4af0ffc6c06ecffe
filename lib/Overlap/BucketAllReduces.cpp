//===- BucketAllReduces.cpp - one reduction for many gradients --------------------------------===//
//
// Joins all-reduces and reduce-scatters; see Buckets.h.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/OneBit.h"
#include "dialects/Par/Par.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "lib/Overlap/Buckets.h"
#include "partita/Analysis/IdleOptions.h"
#include "partita/Overlap/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_BUCKETALLREDUCESPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct BucketAllReduces : partita::impl::BucketAllReducesPassBase<BucketAllReduces> {
  using BucketAllReducesPassBase::BucketAllReducesPassBase;

  void runOnOperation() override {
    auto reduces = [](Operation *op) {
      auto collective = dyn_cast<CollectiveInterface>(op);
      return collective && collective.getRow().reduces && isa<StartableInterface>(op) &&
             !isa<par::ReshardInterface>(op) && // along a dimension: one value each
             !overlap::Buckets::isOfChunk(op);
    };
    // First, since ops that a walk visits next must not move.
    llvm::MapVector<Block *, SmallVector<zero::ReduceScatterOp>> scatters;
    getOperation().walk([&](zero::ReduceScatterOp op) { scatters[op->getBlock()].push_back(op); });
    for (auto &[block, ops] : scatters)
      sinkSums(ops, reduces);
    FailureOr<overlap::Buckets::Joined> made =
        overlap::Buckets::joinAll(getOperation(), reduces, bytes);
    if (failed(made))
      return signalPassFailure();
    buckets += made->count;
    getOperation().walk([&](Block *block) { delaySumsOfShards(*block, reduces); });
    if (bytes > 0 && !made->sizeCounts &&
        failed(analysis::reportIdle(getOperation(), "bucket-bytes",
                                    par::hasOneBitSums(getOperation())
                                        ? "the optimizer sums all momenta at once, so "
                                          "that no two gradients are left to reduce "
                                          "together"
                                        : "no two gradients could be reduced together")))
      signalPassFailure();
  }

private:
  /// A sum of the shards that a reduce-scatter makes would wait for it at once, so that nothing hides the
  /// reduce-scatter: it goes behind what computes the next gradients, before their reduce-scatter.
  static void delaySumsOfShards(Block &block, llvm::function_ref<bool(Operation *)> reduces) {
    SmallVector<Operation *> sums;
    for (Operation &op : block)
      if (reduces(&op))
        sums.push_back(&op);
    for (Operation *sum : sums) {
      Operation *last = nullptr; // that makes an operand
      for (Value operand : sum->getOperands())
        if (Operation *definer = operand.getDefiningOp();
            definer && definer->getBlock() == &block && (!last || last->isBeforeInBlock(definer)))
          last = definer;
      auto scatter = dyn_cast_or_null<zero::ReduceScatterOp>(last);
      const auto *next =
          scatter ? llvm::find_if(sums,
                                  [&](Operation *other) {
                                    auto like = dyn_cast<zero::ReduceScatterOp>(other);
                                    return like && like.getAxisAttr() == scatter.getAxisAttr() &&
                                           sum->isBeforeInBlock(like);
                                  })
                  : sums.end();
      if (next == sums.end())
        continue;
      bool isUsedBefore = llvm::any_of(sum->getUsers(), [&](Operation *user) {
        Operation *use = block.findAncestorOpInBlock(*user);
        return use && (use == *next || use->isBeforeInBlock(*next));
      });
      if (!isUsedBefore)
        sum->moveBefore(*next);
    }
  }

  /// A shard that is only added to those of other micro-batches is no reason to close a bucket, so
  /// the sums of a block's reduce-scatters sink to their first use. Sums that are reduced over
  /// another axis are placed together after the last reduce-scatter, so that they share buckets
  /// there.
  static void sinkSums(ArrayRef<zero::ReduceScatterOp> scatters,
                       llvm::function_ref<bool(Operation *)> reduces) {
    Operation *end = scatters.back();
    for (zero::ReduceScatterOp op : scatters)
      for (Operation *sum : llvm::make_early_inc_range(op->getUsers())) {
        if (!isa<tx::AddOp>(sum) || sum->getBlock() != op->getBlock())
          continue;
        Operation *first = nullptr;
        for (Operation *user : sum->getUsers())
          if (Operation *use = sum->getBlock()->findAncestorOpInBlock(*user);
              use && (!first || use->isBeforeInBlock(first)))
            first = use;
        if (!first)
          continue;
        bool isBehind = reduces(first) && end->isBeforeInBlock(first) && isDefinedBefore(sum, end);
        sum->moveBefore(isBehind ? end->getNextNode() : first);
        if (isBehind)
          end = sum;
      }
  }

  /// Returns true if the user's operands are defined directly after `op`, in its block.
  static bool isDefinedBefore(Operation *user, Operation *op) {
    return llvm::all_of(user->getOperands(), [&](Value operand) {
      Operation *definer = operand.getDefiningOp();
      return !definer || definer->getBlock() != op->getBlock() || definer == op ||
             definer->isBeforeInBlock(op);
    });
  }
};

} // namespace
