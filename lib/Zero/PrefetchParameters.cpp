//===- PrefetchParameters.cpp - decides when parameters are gathered -------------------------===//
//
// Works block by block. Sorts the gathers of parameters by their first uses; neighbors whose uses
// belong to one layer (of one pass) join, up to the size of a bucket. A bucket starts right before
// its first use and moves up, past the first uses of buckets before it, while the bytes gathered
// and not yet used stay within the bound. One bucket ahead is always allowed: without it, no gather
// is hidden. If a value that the forward pass gathered is still alive where the backward pass would
// gather it, it is reused. A parameter that is gathered over one axis after another joins as a whole:
// one collective per axis, each a bucket ahead of the next one, so that both are hidden.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Zero/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_ZEROPREFETCHPARAMETERSPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Gathers that become one collective; or one per axis, with those whose results they gather.
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

  /// Returns the gather over another axis whose result this one gathers, and no other of the same pass, or null.
  static zero::GatherOp innerOf(zero::GatherOp op) {
    auto inner = op.getShards()[0].getDefiningOp<zero::GatherOp>();
    auto isLater =
        [&](Operation *user) { // gathers the secondary copy for the backward pass, or saves it
          auto gather = dyn_cast<zero::GatherOp>(user);
          return user == op || isa<train::YieldOp>(user) || (gather && gather.getAgain());
        };
    bool belongs = inner && inner.getShards().size() == 1 && inner.getAgain() == op.getAgain() &&
                   inner->getBlock() == op->getBlock() && llvm::all_of(inner->getUsers(), isLater);
    return belongs ? inner : zero::GatherOp();
  }

  /// Returns true if both gather over the same axes, for the same pass.
  static bool isLike(zero::GatherOp a, zero::GatherOp b) {
    if (a.getAxisAttr() != b.getAxisAttr() || a.getAgain() != b.getAgain())
      return false;
    zero::GatherOp innerA = innerOf(a), innerB = innerOf(b);
    return innerA && innerB ? isLike(innerA, innerB) : !innerA && !innerB;
  }

  void run(Block *block) {
    llvm::DenseSet<Operation *> inner;
    parameters.clear();
    for (auto op : block->getOps<zero::GatherOp>())
      if (op.getShards().size() == 1 && innerOf(op))
        inner.insert(innerOf(op));
    SmallVector<std::pair<Operation *, zero::GatherOp>> gathers;
    for (auto op : block->getOps<zero::GatherOp>())
      if (op.getShards().size() == 1 && !inner.contains(op))
        if (FlatSymbolRefAttr parameter = train::parameterReadBy(op.getShards()[0]))
          if (Operation *use = analysis::firstUse(op)) {
            gathers.push_back({use, op});
            parameters[op] = parameter;
          }
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
                   isLike(buckets.back().members.front(), op) &&
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
    Operation *previous = nullptr; // moment
    for (auto [i, bucket] : llvm::enumerate(buckets)) {
      Operation *moment = buckets[analysis::aheadOf(buckets, i, aheadBytes)].firstUse;
      elideWhatIsAlive(bucket, moment);
      if (bucket.members.empty())
        continue;
      ahead += moment != bucket.firstUse;
      bool isAhead = previous && previous->isBeforeInBlock(moment);
      join(bucket.members, moment, isAhead ? previous : moment);
      previous = moment;
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
      Value shard = op.getShards()[0], full = fullTensors.lookup(parameters.lookup(op));
      if (always || !op.getAgain() || !full || full.getType() != op->getResult(0).getType() ||
          !livesAt(full, moment))
        return false;
      op->getResult(0).replaceAllUsesWith(full);
      op->erase();
      while (Operation *made = shard.getDefiningOp()) { // a gather over another axis, a fetch
        if (!isOpTriviallyDead(made) || made->getNumOperands() != 1)
          break;
        shard = made->getOperand(0);
        made->erase();
      }
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

  /// Joins the gathers before this op, and those whose results they gather before that one; into one for each
  /// size of 8-bit blocks.
  void join(ArrayRef<zero::GatherOp> members, Operation *before, Operation *innerBefore) {
    llvm::MapVector<uint64_t, SmallVector<zero::GatherOp>> byBlock;
    for (zero::GatherOp op : members)
      byBlock[op.getInt8Block().value_or(0)].push_back(op);
    for (auto &[block, alike] : byBlock)
      if (innerOf(alike.front()))
        join(llvm::map_to_vector(alike, innerOf), innerBefore, innerBefore);
    for (zero::GatherOp op : members)
      bringBefore(op.getShards()[0].getDefiningOp(), before);
    for (auto &[block, alike] : byBlock)
      joinAlike(alike, before);
  }

  void joinAlike(ArrayRef<zero::GatherOp> members, Operation *before) {
    OpBuilder builder(before);
    SmallVector<Value> shards;
    SmallVector<Type> types;
    SmallVector<Location> locs;
    for (zero::GatherOp op : members) {
      llvm::append_range(shards, op.getShards());
      llvm::append_range(types, op->getResultTypes());
      locs.push_back(op.getLoc());
    }
    zero::GatherOp first = members.front();
    auto joined = zero::GatherOp::create(builder, builder.getFusedLoc(locs), types, shards,
                                         first.getAxisAttr(), first.getReasonAttr(),
                                         first.getAgainAttr(), first.getInt8BlockAttr());
    for (auto [op, full] : llvm::zip(members, joined.getFull())) {
      Operation *single = op;
      if (FlatSymbolRefAttr parameter = parameters.lookup(single))
        fullTensors[parameter] = full;
      single->getResult(0).replaceAllUsesWith(full);
      single->erase();
    }
  }

  llvm::DenseMap<Attribute, Value> fullTensors; ///< by parameter, gathered so far
  /// What each gather of a full parameter gathers; joined gathers don't tell any more.
  llvm::DenseMap<Operation *, FlatSymbolRefAttr> parameters;
};

} // namespace
