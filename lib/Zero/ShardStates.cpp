//===- ShardStates.cpp - each rank updates a shard, and keeps its states ----------------------===//
//
// This pass only inserts shards and gathers; an algebraic rewrite turns the shard of a reduced
// gradient into a reduce-scatter (dialects/Zero/Algebra.cpp).
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "lib/Zero/Causes.h"
#include "lib/Zero/ShardingAxes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Zero/Passes.h"

namespace partita {
#define GEN_PASS_DEF_ZEROSHARDSTATESPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct ZeroShardStates : partita::impl::ZeroShardStatesPassBase<ZeroShardStates> {
  using ZeroShardStatesPassBase::ZeroShardStatesPassBase;

  void runOnOperation() override {
    if (stage < 0 || stage > 3) {
      getOperation().emitError() << "stage=" << stage.getValue() << ", expected 0, 1, 2 or 3";
      return signalPassFailure();
    }
    ModuleOp module = getOperation();
    if (stage < 1)
      return;
    mesh = par::MeshAttr::of(module);
    axes = zero::requireShardingAxes(
        module, "zero stage " + Twine(stage.getValue()) + " splits the optimizer's states", hpz);
    if (axes.empty())
      return signalPassFailure();
    SmallVector<train::OptimizerInterface> updates;
    module.walk([&](Operation *op) {
      if (isa<train::ReadOp, train::InitialValueOp>(op))
        accesses[op->getAttrOfType<FlatSymbolRefAttr>("symbol").getAttr()].push_back(
            op->getResult(0));
      if (auto update = dyn_cast<train::OptimizerInterface>(op))
        updates.push_back(update);
    });
    if (updates.empty()) {
      module.emitError() << "zero stage " << int64_t(stage)
                         << " splits the updates of parameters, of which this program has none; "
                            "leave it out to compile a program that does not train";
      return signalPassFailure();
    }
    auto keepsNone = [](train::OptimizerInterface update) {
      return update.getStateNames().empty();
    };
    if (stage < 3 && llvm::all_of(updates, keepsNone) && (stage == 1 || !accumulates(module))) {
      module.emitWarning() << "zero stage " << int64_t(stage)
                           << " splits the optimizer's states, and this one keeps none"
                           << (stage == 2 ? " (gradients stay sharded only with --accumulate)" : "")
                           << ": it saves nothing; --zero-stage 3 splits parameters";
    }
    for (train::OptimizerInterface update : updates)
      shard(update);
  }

private:
  /// Returns true if gradients of several micro-batches are added up.
  static bool accumulates(ModuleOp module) {
    auto several = [](train::AccumulateOp loop) {
      return loop.getCount() > 1 ? WalkResult::interrupt() : WalkResult::advance();
    };
    return module.walk(several).wasInterrupted();
  }

  /// Where a gradient is summed over ranks, perhaps for each micro-batch or before a cast; none if it is not.
  static std::optional<Location> reductionOf(Value gradient) {
    while (Operation *op = gradient.getDefiningOp()) {
      if (isa<CollectiveInterface>(op))
        return op->getLoc();
      auto loop = dyn_cast<train::AccumulateOp>(op);
      unsigned number = cast<OpResult>(gradient).getResultNumber();
      if (loop ? number >= loop.getSums().size() : !isa<tx::CastOp>(op))
        break;
      gradient = loop ? loop.getPart(number).get() : op->getOperand(0);
    }
    return std::nullopt;
  }

  void shard(train::OptimizerInterface update) {
    Type full = update->getOperand(0).getType();
    // Values that ranks do not update alike cannot be sharded among them.
    SmallVector<StringAttr> over = zero::sharedBy(full, axes, mesh);
    if (over.empty())
      return;
    ++sharded;
    RankedTensorType shard = zero::shardType(full, over, mesh);
    for (unsigned result = 0; result < update.getUpdates().size(); ++result) {
      Value state = update->getOperand(*update.getUpdatedOperand(result));
      train::StateOp symbol = train::stateReadBy(state);
      if (symbol && result > 0 && isReadInFull(state, update))
        takeShard(state, over, update);
      else if (symbol)
        for (Value access : accesses.lookup(symbol.getSymNameAttr()))
          access.setType(shard);
    }
    Value gradient = update.getUpdatingGradient();
    std::optional<Location> reduced = reductionOf(gradient);
    Value rounded = update.getRounded(), updated = rounded ? rounded : update->getResult(0);
    full = updated.getType();
    if (!rounded)
      takeShard(update.getUpdatedValue(), over, update);
    takeShard(gradient, over, update);
    for (Value result : update->getResults())
      result.setType(shard.clone(getElementTypeOrSelf(result.getType())));
    OpBuilder builder(update);
    builder.setInsertionPointAfter(update);
    Location reason = zero::withRole(update->getLoc(), reduced, par::Role::Update);
    Value gathered = updated;
    Operation *first = nullptr;
    for (; !over.empty(); over.pop_back()) { // in the reverse order of the cuts
      Type type = over.size() == 1 ? full : zero::shardType(full, ArrayRef(over).drop_back(), mesh);
      auto gather = zero::GatherOp::create(builder, reason, TypeRange(type), gathered, over.back(),
                                           builder.getStringAttr("updated parameter"),
                                           /*again=*/UnitAttr());
      first = first ? first : gather;
      gathered = gather.getResult(0);
    }
    updated.replaceAllUsesExcept(gathered, first);
  }

  static bool needsShard(Operation *op, train::OptimizerInterface update) {
    return op == update || op->hasTrait<train::OfFullTensors>();
  }

  /// Does anything but the update need the state? A term of 1-bit Adam's sums is of the whole momentum.
  static bool isReadInFull(Value state, train::OptimizerInterface update) {
    return llvm::any_of(state.getUsers(),
                        [&](Operation *user) { return !needsShard(user, update); });
  }

  /// Replaces a value or gradient by its shard in its update, and in norms, which count each
  /// element once.
  void takeShard(Value full, ArrayRef<StringAttr> over, train::OptimizerInterface update) {
    Operation *first = update;
    for (Operation *user : full.getUsers())
      if (needsShard(user, update) && user->getBlock() == first->getBlock() &&
          user->isBeforeInBlock(first))
        first = user;
    OpBuilder builder(first);
    Value taken = full;
    for (size_t i = 0; i < over.size(); ++i)
      taken = zero::ShardOp::create(builder, update->getLoc(),
                                    zero::shardType(full.getType(), over.take_front(i + 1), mesh),
                                    taken, over[i]);
    full.replaceUsesWithIf(taken,
                           [&](OpOperand &use) { return needsShard(use.getOwner(), update); });
  }

  par::MeshAttr mesh;
  SmallVector<StringAttr> axes;
  /// Reads and initial values of each symbol, in all functions.
  llvm::DenseMap<StringAttr, SmallVector<Value, 2>> accesses;
};

} // namespace
