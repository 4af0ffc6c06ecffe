//===- QuantizeGathers.cpp - gathers of 8-bit numbers -----------------------------------------===//
//
// dequantize(gather(quantize(shard))), and the same over one axis after another: what is quantized is the shard
// over all of them.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Zero/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace partita {
#define GEN_PASS_DEF_ZEROQUANTIZEGATHERSPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct ZeroQuantizeGathers : partita::impl::ZeroQuantizeGathersPassBase<ZeroQuantizeGathers> {
  using ZeroQuantizeGathersPassBase::ZeroQuantizeGathersPassBase;

  void runOnOperation() override {
    mesh = par::MeshAttr::of(getOperation());
    SmallVector<SmallVector<zero::GatherOp>> buckets;
    getOperation().walk([&](zero::GatherOp gather) {
      if (!gather.getInt8Block())
        return;
      if (buckets.empty() || !follows(buckets.back().back(), gather))
        buckets.emplace_back();
      buckets.back().push_back(gather);
    });
    for (ArrayRef<zero::GatherOp> bucket : buckets)
      expand(bucket);
    eraseUnused();
    SmallVector<train::ReadOp> reads;
    getOperation().walk([&](train::ReadOp read) {
      if (read.getInt8Block())
        reads.push_back(read);
    });
    for (train::ReadOp read : reads)
      roundWhereRead(read);
  }

private:
  struct Stored {
    Value values, scales;
  };
  /// What is gathered in 8 bits.
  struct Gathered {
    Stored source;
    Value full;
    int64_t block;
  };

  /// Is it the next part of a bucket, which differs in the size of blocks alone?
  static bool follows(zero::GatherOp op, zero::GatherOp next) {
    return op->getNextNode() == next && op.getAxisAttr() == next.getAxisAttr() &&
           op.getAgain() == next.getAgain() && op.getReasonAttr() == next.getReasonAttr();
  }

  void roundWhereRead(train::ReadOp read) {
    auto block = static_cast<int64_t>(*read.getInt8Block());
    read.removeInt8BlockAttr();
    OpBuilder builder(read);
    builder.setInsertionPointAfter(read);
    Value stored = read.getResult();
    auto rounded = zero::RoundBlocksOp::create(builder, read.getLoc(), stored.getType(), stored,
                                               static_cast<uint64_t>(block));
    copyLayer(read, rounded);
    stored.replaceAllUsesExcept(rounded, rounded);
    ++exact;
  }

  static void copyLayer(Operation *from, Operation *to) {
    if (Attribute layer = provenance::get(from, provenance::kLayer))
      provenance::set(to, provenance::kLayer, layer);
  }

  /// The shard in 8 bits, made where the shard is: once for all its gathers. Null if it does not hold whole blocks.
  Stored quantize(Value shard, int64_t block, Operation *of) {
    RankedTensorType scales = zero::scalesType(shard.getType(), block, mesh);
    if (!scales)
      return {};
    Stored &known = stored[{shard, block}];
    if (known.values)
      return known;
    if (Stored earlier = savedInBits(shard, block); earlier.values)
      return stored[{shard, block}] = earlier;
    if (Stored inner = throughGather(shard, block, of); inner.values)
      return stored[{shard, block}] = inner;
    OpBuilder builder(of);
    builder.setInsertionPointAfterValue(shard);
    auto bytes = cast<RankedTensorType>(shard.getType()).clone(builder.getI8Type());
    auto op = zero::QuantizeBlocksOp::create(builder, of->getLoc(), bytes, scales, shard,
                                             static_cast<uint64_t>(block));
    if (Operation *definer = shard.getDefiningOp())
      copyLayer(definer, op);
    ++quantized;
    return stored[{shard, block}] = {op.getValues(), op.getScales()};
  }

  /// If the shard is gathered over another axis, and nothing uses what that gathers but gathers of 8 bits (the backward pass's
  /// from hpZ's secondary copy, too, which then is in 8 bits): all that it gathers, in 8 bits.
  Stored throughGather(Value shard, int64_t block, Operation *of) {
    auto inner = shard.getDefiningOp<zero::GatherOp>();
    if (!inner || inner.getInt8Block() || !inner.gathersParameters() ||
        !llvm::all_of(inner->getResults(), [&](Value each) { return isGatheredLike(each, of); }))
      return {};
    OpBuilder builder(inner);
    SmallVector<Gathered> all;
    for (auto [from, to] : llvm::zip_equal(inner.getShards(), inner.getFull())) {
      Stored source = quantize(from, block, inner);
      if (!source.values || !zero::scalesType(to.getType(), block, mesh))
        return {};
      all.push_back({source, to, block});
    }
    for (auto [each, made] : llvm::zip_equal(all, gatherStored(builder, inner, all)))
      stored[{each.full, block}] = made;
    return stored[{shard, block}];
  }

  /// If the shard is what a pass of its own gets of the forward pass, which has it in 8 bits: that, saved in its place.
  Stored savedInBits(Value shard, int64_t block) {
    auto loop = dyn_cast_or_null<train::AccumulateOp>(shard.getParentBlock()->getParentOp());
    Value made = train::forwardOf(shard);
    auto found = stored.find({made, block});
    if (!loop || made == shard || found == stored.end() || !found->second.values)
      return {};
    Stored source = found->second;
    unsigned reader = loop.numberOf(*shard.getParentRegion());
    saving.insert(loop);
    return {loop.save(source.values, reader), loop.save(source.scales, reader)};
  }

  /// Is the shard only gathered like that, by later passes that it is saved for, too?
  static bool isGatheredLike(Value shard, Operation *of) {
    return llvm::all_of(shard.getUses(), [&](OpOperand &use) {
      auto yield = dyn_cast<train::YieldOp>(use.getOwner());
      auto loop = yield ? yield->getParentOfType<train::AccumulateOp>() : train::AccumulateOp();
      if (!loop)
        return gathersLike(use.getOwner(), of);
      unsigned pass = loop.numberOf(*yield->getParentRegion()), passes = loop->getNumRegions();
      auto saved = llvm::find(loop.getSaved(pass), shard);
      if (saved == loop.getSaved(pass).end())
        return false;
      unsigned number = loop.countSavedBefore(pass) + (saved - loop.getSaved(pass).begin());
      for (unsigned reader = pass + 1; reader < passes; ++reader)
        if (!llvm::all_of(loop.getSavedArgument(number, reader).getUsers(),
                          [&](Operation *user) { return gathersLike(user, of); }))
          return false;
      return true;
    });
  }

  /// Does it gather over the same axis, rounding to 8 bits? Then it is replaced as that one is.
  static bool gathersLike(Operation *user, Operation *of) {
    auto gather = dyn_cast<zero::GatherOp>(user);
    return gather && gather.getInt8Block() &&
           gather.getAxisAttr() == cast<zero::GatherOp>(of).getAxisAttr();
  }

  /// Like the gather, of other shards.
  static zero::GatherOp gatherLike(OpBuilder &builder, zero::GatherOp op, ArrayRef<Value> shards,
                                   TypeRange full) {
    return zero::GatherOp::create(builder, op.getLoc(), full, shards, op.getAxisAttr(),
                                  op.getReasonAttr(), op.getAgainAttr());
  }

  /// Gathers all 8-bit numbers, and all scales: a collective moves one type.
  SmallVector<Stored> gatherStored(OpBuilder &builder, zero::GatherOp op, ArrayRef<Gathered> all) {
    SmallVector<Value> values, scales;
    SmallVector<Type> valueTypes, scaleTypes;
    for (const Gathered &each : all) {
      values.push_back(each.source.values);
      scales.push_back(each.source.scales);
      Type full = each.full.getType();
      valueTypes.push_back(cast<RankedTensorType>(full).clone(builder.getI8Type()));
      scaleTypes.push_back(zero::scalesType(full, each.block, mesh));
    }
    zero::GatherOp ofValues = gatherLike(builder, op, values, valueTypes),
                   ofScales = gatherLike(builder, op, scales, scaleTypes);
    SmallVector<Stored> results;
    for (auto [value, scale] : llvm::zip_equal(ofValues.getFull(), ofScales.getFull()))
      results.push_back({value, scale});
    return results;
  }

  void expand(ArrayRef<zero::GatherOp> bucket) {
    SmallVector<Gathered> all;
    for (zero::GatherOp op : bucket) {
      auto block = static_cast<int64_t>(*op.getInt8Block());
      SmallVector<Value> others, otherShards;
      for (auto [shard, value] : llvm::zip_equal(op.getShards(), op.getFull()))
        if (Stored source = quantize(shard, block, op); source.values) {
          all.push_back({source, value, block});
        } else {
          otherShards.push_back(shard);
          others.push_back(value);
        }
      if (!others.empty())
        gatherExact(op, otherShards, others, block);
      replaced.insert(op);
      for (Value shard : op.getShards())
        if (auto inner = shard.getDefiningOp<zero::GatherOp>())
          replaced.insert(inner);
    }
    if (all.empty())
      return;
    zero::GatherOp op = bucket.back();
    OpBuilder builder(op);
    for (auto [each, made] : llvm::zip_equal(all, gatherStored(builder, op, all)))
      if (std::optional<OpBuilder> at = firstUse(each.full))
        replace(each.full,
                zero::DequantizeBlocksOp::create(*at, op.getLoc(), each.full.getType(), made.values,
                                                 made.scales, static_cast<uint64_t>(each.block)));
  }

  /// What holds no whole blocks is gathered as it is, and rounded where it is used.
  void gatherExact(zero::GatherOp op, ArrayRef<Value> shards, ArrayRef<Value> full, int64_t block) {
    OpBuilder builder(op);
    zero::GatherOp gather = gatherLike(builder, op, shards, ValueRange(full).getTypes());
    for (auto [value, gathered] : llvm::zip_equal(full, gather.getFull()))
      if (std::optional<OpBuilder> at = firstUse(value))
        replace(value, zero::RoundBlocksOp::create(*at, op.getLoc(), gathered.getType(), gathered,
                                                   static_cast<uint64_t>(block)));
    exact += full.size();
  }

  /// Where the gathered value is used first; none if it is not.
  static std::optional<OpBuilder> firstUse(Value value) {
    Operation *use = analysis::firstUseOf(value);
    return use ? std::optional(OpBuilder(use)) : std::nullopt;
  }

  /// Replaces the gathered value by the result of this op, which is right before its first use.
  static void replace(Value value, Operation *made) {
    copyLayer(made->getNextNode(), made);
    value.replaceAllUsesWith(made->getResult(0));
  }

  /// Erases gathers that others have replaced, and what was quantized for a gather that stays. Only now: `stored` finds
  /// ops by their results.
  void eraseUnused() {
    SmallVector<Operation *> inner; // of gathers after them in the list, the backward pass's too
    for (Operation *op : replaced)
      op->use_empty() ? op->erase() : inner.push_back(op);
    for (train::AccumulateOp loop : saving) // exact shards that were saved
      loop.simplifySaved();
    for (Operation *op : inner)
      if (op->use_empty())
        op->erase();
    for (auto &[shard, made] : stored)
      if (made.values)
        if (auto op = made.values.getDefiningOp<zero::QuantizeBlocksOp>(); op && op->use_empty())
          op->erase(); // each is in one place of the map
    stored.clear();    // the pass runs on one stage after another
    replaced.clear();
    saving.clear();
  }

  par::MeshAttr mesh;
  llvm::MapVector<std::pair<Value, int64_t>, Stored> stored;
  llvm::SetVector<Operation *> replaced;
  llvm::SetVector<train::AccumulateOp> saving; ///< 8 bits for later passes
};

} // namespace
