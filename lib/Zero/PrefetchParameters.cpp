//===- PrefetchParameters.cpp - decides when parameters are gathered -------------------------===//
//
// Works block by block. Sorts the gathers of parameters by their first uses; neighbors whose uses
// belong to one layer (of one pass) join, up to the size of a bucket. A bucket starts right before
// its first use and moves up, past the first uses of buckets before it, while the bytes gathered
// and not yet used stay within the bound. One bucket ahead is always allowed: without it, no gather
// is hidden. If a value that the forward pass gathered is still alive where the backward pass would
// gather it, it is reused.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Zero/Passes.h"

namespace partita {
#define GEN_PASS_DEF_ZEROPREFETCHPARAMETERSPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Gathers that become one collective.
struct Bucket {
  SmallVector<zero::GatherOp> members;
  Operation *firstUse = nullptr;
  int64_t bytes = 0; // of the full values
};

struct ZeroPrefetchParameters
    : partita::impl::ZeroPrefetchParametersPassBase<ZeroPrefetchParameters> {
  using ZeroPrefetchParametersPassBase::ZeroPrefetchParametersPassBase;

  void runOnOperation() override {
    if (bucketBytes < 0 || aheadBytes < 0) {
      getOperation().emitError() << "bucket-bytes=" << bucketBytes.getValue()
                                 << " ahead-bytes=" << aheadBytes.getValue()
                                 << ", expected none below 0";
      return signalPassFailure();
    }
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      run(block);
  }

private:
  /// Returns true if the uses belong to one layer and direction.
  static bool sameLayer(Operation *a, Operation *b) {
    train::LayerAttr first = train::LayerAttr::of(a), second = train::LayerAttr::of(b);
    return first == second && provenance::isBackward(a) == provenance::isBackward(b);
  }

  void run(Block *block) {
    SmallVector<std::pair<Operation *, zero::GatherOp>> gathers;
    for (auto op : block->getOps<zero::GatherOp>())
      if (op.getShards().size() == 1 && train::parameterReadBy(op.getShards()[0]))
        if (Operation *use = analysis::firstUse(op))
          gathers.push_back({use, op});
    if (gathers.empty())
      return;
    llvm::sort(gathers, [](auto a, auto b) {
      return a.first != b.first ? a.first->isBeforeInBlock(b.first)
                                : a.second->isBeforeInBlock(b.second);
    });
    SmallVector<Bucket> buckets;
    for (auto [use, op] : gathers) {
      int64_t bytes = bytesOf(op.getFull().getTypes());
      bool joins = !buckets.empty() && sameLayer(buckets.back().firstUse, use) &&
                   buckets.back().members.front().getAxisAttr() == op.getAxisAttr() &&
                   buckets.back().members.front().getAgain() == op.getAgain() &&
                   buckets.back().bytes + bytes <= bucketBytes;
      if (!joins)
        buckets.push_back({{}, use, 0});
      buckets.back().members.push_back(op);
      buckets.back().bytes += bytes;
    }
    place(buckets);
  }

  /// Places buckets from the first on, so that each may pass those already placed.
  void place(MutableArrayRef<Bucket> buckets) {
    fullTensors.clear();
    for (auto [i, bucket] : llvm::enumerate(buckets)) {
      Operation *moment = buckets[analysis::aheadOf(buckets, i, aheadBytes)].firstUse;
      elideWhatIsAlive(bucket, moment);
      if (bucket.members.empty())
        continue;
      ahead += moment != bucket.firstUse;
      join(bucket, moment);
    }
  }

  /// Returns true if the value is used at or after `moment`.
  static bool livesAt(Value full, Operation *moment) {
    return llvm::any_of(full.getUsers(), [&](Operation *user) {
      Operation *use = moment->getBlock()->findAncestorOpInBlock(*user);
      return use && !use->isBeforeInBlock(moment);
    });
  }

  void elideWhatIsAlive(Bucket &bucket, Operation *moment) {
    llvm::erase_if(bucket.members, [&](zero::GatherOp op) {
      Value shard = op.getShards()[0], full = fullTensors.lookup(train::parameterReadBy(shard));
      if (always || !op.getAgain() || !full || full.getType() != op->getResult(0).getType() ||
          !livesAt(full, moment))
        return false;
      op->getResult(0).replaceAllUsesWith(full);
      op->erase();
      if (Operation *fetch = shard.getDefiningOp(); isOpTriviallyDead(fetch))
        fetch->erase();
      ++elided;
      return true;
    });
  }

  /// Moves what reads the shard up along with its gather: nothing is written before everything has
  /// been read.
  static void bringBefore(Operation *op, Operation *before) {
    if (!op || op->getBlock() != before->getBlock() || op->isBeforeInBlock(before))
      return;
    for (Value operand : op->getOperands())
      bringBefore(operand.getDefiningOp(), before);
    op->moveBefore(before);
  }

  void join(const Bucket &bucket, Operation *before) {
    OpBuilder builder(before);
    SmallVector<Value> shards;
    SmallVector<Type> types;
    SmallVector<Location> locs;
    for (zero::GatherOp op : bucket.members) {
      bringBefore(op.getShards()[0].getDefiningOp(), before);
      llvm::append_range(shards, op.getShards());
      llvm::append_range(types, op->getResultTypes());
      locs.push_back(op.getLoc());
    }
    zero::GatherOp first = bucket.members.front();
    auto joined =
        zero::GatherOp::create(builder, builder.getFusedLoc(locs), types, shards,
                               first.getAxisAttr(), first.getReasonAttr(), first.getAgainAttr());
    for (auto [op, full] : llvm::zip(bucket.members, joined.getFull())) {
      Operation *single = op;
      fullTensors[train::parameterReadBy(single->getOperand(0))] = full;
      single->getResult(0).replaceAllUsesWith(full);
      single->erase();
    }
  }

  llvm::DenseMap<Attribute, Value> fullTensors; ///< by parameter, gathered so far
};

} // namespace
