//===- ShardParameters.cpp - each rank keeps a shard of every parameter -----------------------===//
//
// The gather replaces the conjugate `f`: if the ranks of the axis work on different samples, its
// adjoint is a reduce-scatter. Over two axes there is one gather each, that of the nearer ranks last,
// of shards. The `f` of other axes moves before the gathers, onto the shard, so that those ranks
// reduce shards, too. Its cause is that of the `f`, also for gathers of inference and
// evaluation, which have none, and where several pipeline stages share the parameter.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "lib/Zero/Causes.h"
#include "lib/Zero/ShardingAxes.h"
#include "lib/Zero/SyncEach.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Zero/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_ZEROSHARDPARAMETERSPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct ZeroShardParameters : partita::impl::ZeroShardParametersPassBase<ZeroShardParameters> {
  using ZeroShardParametersPassBase::ZeroShardParametersPassBase;

  void runOnOperation() override {
    if (stage < 0 || stage > 3) {
      getOperation().emitError() << "stage=" << stage.getValue() << ", expected 0, 1, 2 or 3";
      return signalPassFailure();
    }
    ModuleOp module = getOperation();
    if (keep < 0) {
      module.emitError() << "keep=" << keep.getValue()
                         << ", expected a number of elements from 0 on";
      return signalPassFailure();
    }
    if (failed(checkStrategy(module)) || failed(zero::checkSyncEach(module, syncEach)))
      return signalPassFailure();
    if (stage < 3)
      return;
    mesh = par::MeshAttr::of(module);
    axes = zero::requireShardingAxes(module, "zero stage 3 splits the parameters", hpz);
    if (axes.empty())
      return signalPassFailure();
    SmallVector<train::ReadOp> reads;
    module.walk([&](train::ReadOp read) { reads.push_back(read); });
    SymbolTable symbols(module);
    for (train::ReadOp read : reads)
      for (StringAttr axis : axes)
        if (par::FOp f = conjugateBehind(read.getResult(), axis))
          reasons.try_emplace({read.getSymbolAttr().getAttr(), axis}, f.getLoc());
    bool rounds = false, gathersRounded = false; // in 8 bits
    for (train::ReadOp read : reads)
      if (symbols.lookup<train::ParameterOp>(read.getSymbol())) {
        rounds |= read.getInt8Block().has_value();
        if (SmallVector<StringAttr> over = shardedOver(read.getType()); !over.empty()) {
          gathersRounded |= read.getInt8Block().has_value();
          shard(read, over);
        }
      }
    if (rounds && !gathersRounded) {
      module.emitError()
          << "--zero-quantized-weights: sends nothing less, because no parameter that it rounds is sent: see "
             "--persistence-threshold, "
          << keep.getValue() << "; leave it out";
      return signalPassFailure();
    }
    module.walk([&](train::InitialValueOp initial) {
      if (symbols.lookup<train::ParameterOp>(initial.getSymbol()))
        if (SmallVector<StringAttr> over = shardedOver(initial.getType()); !over.empty())
          initial.getResult().setType(zero::shardType(initial.getType(), over, mesh));
    });
  }

private:
  /// An axis that cuts a parameter, what is gathered over it, and why.
  struct Cut {
    StringAttr axis;
    Type whole;
    Location loc;
  };
  using Cuts = SmallVector<Cut, 2>;

  LogicalResult checkStrategy(ModuleOp module) {
    bool splits = strategy == "full-shard" || strategy == "shard-grad-op";
    if (strategy == "none" || (splits ? stage == 3 : strategy == "no-shard" && stage == 0))
      return success();
    if (!splits && strategy != "no-shard")
      return module.emitError() << "fsdp strategy '" << strategy
                                << "' is unknown; known: none, no-shard, shard-grad-op, full-shard";
    return module.emitError() << "fsdp strategy " << strategy << " is zero stage "
                              << (splits ? 3 : 0) << ", the plan says stage " << int64_t(stage)
                              << "; leave out one of the two";
  }

  /// The axes over which a parameter is sharded. All reads and initial values of a parameter have
  /// one type, so the result is the same for all of them.
  SmallVector<StringAttr> shardedOver(Type type) const {
    if (cast<RankedTensorType>(type).getNumElements() <= keep)
      return {};
    return zero::sharedBy(type, axes, mesh);
  }

  /// The `f` over the axis after the value or others like it; null for a program without gradients.
  static par::FOp conjugateBehind(Value value, StringAttr axis) {
    for (Operation *user : value.getUsers()) {
      auto f = dyn_cast<par::FOp>(user);
      if (f && f.getAxisAttr() == axis)
        return f;
      if (isa<TransparentInterface>(user) && user->getNumResults() == 1)
        if (par::FOp behind = conjugateBehind(user->getResult(0), axis))
          return behind;
    }
    return {};
  }

  /// The value's only users are `f`s, one after another, up to the value that ops compute with:
  /// returned with the `f`s.
  static Value lastConjugate(Value value, SmallVectorImpl<par::FOp> &conjugates) {
    while (value.hasOneUse()) {
      auto f = dyn_cast<par::FOp>(*value.getUsers().begin());
      if (!f)
        break;
      conjugates.push_back(f);
      value = f.getResult();
    }
    return value;
  }

  void shard(train::ReadOp read, ArrayRef<StringAttr> over) {
    SmallVector<par::FOp> conjugates;
    Value used = lastConjugate(read.getResult(), conjugates);
    Type full = used.getType();
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : used.getUses())
      uses.push_back(&use);
    Value shard = read.getResult();
    shard.setType(zero::shardType(shard.getType(), over, mesh));
    IntegerAttr int8Block =
        read.getInt8BlockAttr(); // what is gathered is rounded, not what is kept
    read.removeInt8BlockAttr();
    OpBuilder builder(read);
    builder.setInsertionPointAfter(read);
    Cuts cuts;
    for (auto [i, axis] : llvm::enumerate(over)) {
      std::optional<Location> reason = reasons.lookup({read.getSymbolAttr().getAttr(), axis});
      cuts.push_back({axis, i == 0 ? full : zero::shardType(full, over.take_front(i), mesh),
                      zero::withRole(read.getLoc(), reason, par::Role::Kept)});
    }
    for (par::FOp f : conjugates) {
      auto *cut = llvm::find_if(cuts, [&](const Cut &cut) { return cut.axis == f.getAxisAttr(); });
      if (cut != cuts.end()) {
        // keeps the reason for reducing the gradient
        cut->loc = par::withRole(f.getLoc(), f.getLoc(), par::Role::Kept);
        continue;
      }
      par::Layout layout = par::Layout::of(shard.getType());
      layout.set(f.getAxisAttr(), par::Kind::Replicated);
      shard = par::FOp::create(builder, f.getLoc(), par::withLayout(shard.getType(), layout), shard,
                               f.getAxisAttr());
    }
    gatherForUses(builder, shard, uses, cuts, int8Block);
    for (par::FOp f : llvm::reverse(conjugates))
      f.erase();
  }

  /// Returns the same cause in the layer that first uses the full value: the gather belongs to that
  /// layer, and so does the gradient, wherever the parameter's `f` was.
  static Location inLayerOf(Operation *use, Location loc) {
    train::LayerAttr layer = train::LayerAttr::of(use);
    SmallVector<par::CauseAttr> causes = par::causesOf(loc);
    if (!layer || causes.empty())
      return loc;
    par::CauseAttr cause = causes.front();
    return par::withCause(
        loc, par::CauseAttr::get(loc.getContext(), cause.getRole(), cause.getLetter(),
                                 cause.getRule(), cause.getOp(), cause.getNode(), layer.getNumber(),
                                 layer.getCount(), cause.getSeed()));
  }

  /// Returns where a use needs the full value: at its op, or before the loop that contains it.
  Operation *needs(OpOperand *use, Value shard) const {
    Operation *owner = use->getOwner();
    return syncEach == "step" ? shard.getParentBlock()->findAncestorOpInBlock(*owner) : owner;
  }

  /// Returns true if a use is before another one; both must be needed in one block.
  bool isBefore(OpOperand *use, OpOperand *other, Value shard) const {
    Operation *op = needs(use, shard), *otherOp = needs(other, shard);
    if (op == otherOp) // both in one loop
      return use->getOwner()->getBlock() == other->getOwner()->getBlock() &&
             use->getOwner()->isBeforeInBlock(other->getOwner());
    return op->isBeforeInBlock(otherOp);
  }

  /// Gathers before the first use in each block that uses the full value: in a loop over
  /// micro-batches, no full value outlives a micro-batch.
  void gatherForUses(OpBuilder &builder, Value shard, ArrayRef<OpOperand *> uses, const Cuts &cuts,
                     IntegerAttr int8Block) {
    llvm::MapVector<Block *, OpOperand *> firstUses;
    for (OpOperand *use : uses) {
      Operation *op = needs(use, shard);
      OpOperand *&first = firstUses[op->getBlock()];
      if (!first || isBefore(use, first, shard))
        first = use;
    }
    for (auto [block, first] : firstUses) {
      builder.setInsertionPoint(needs(first, shard));
      ++gathers;
      Value gathered = shard;
      for (const Cut &cut : llvm::reverse(cuts))
        gathered = zero::GatherOp::create(builder, inLayerOf(first->getOwner(), cut.loc),
                                          TypeRange(cut.whole), gathered, cut.axis,
                                          builder.getStringAttr("parameter"), /*again=*/UnitAttr())
                       .getResult(0);
      if (int8Block)
        gathered.getDefiningOp<zero::GatherOp>().setInt8BlockAttr(int8Block);
      for (OpOperand *use : uses)
        if (needs(use, shard)->getBlock() == block)
          use->set(gathered);
    }
  }

  par::MeshAttr mesh;
  SmallVector<StringAttr> axes;
  /// Of each parameter: its `f`'s, by axis.
  llvm::DenseMap<std::pair<StringAttr, StringAttr>, std::optional<Location>> reasons;
};

} // namespace
