//===- GatherAgain.cpp - the backward pass repeats gathers ------------------------------------===//
//
// A gathered value (an activation, a parameter) in the list of saved values of train.accumulate
// lives from the forward pass to the backward pass, although its shard is all that a rank needs to
// keep. So the backward pass gets the shard and its own gather right before the first use. This is
// marked `again`, so that nothing joins it with the forward pass's. Exception: the first use comes
// before the backward pass needs any other parameter (the classifier's weights). What was gathered
// between groups of data-parallel ranks is saved too, as the secondary copy that hpZ gathers from
// within a group (ZeRO++, arXiv 2306.10209). Cheap results
// computed from a gathered activation (norms of a block with parallel branches) are recomputed from
// the backward pass's gather, too. What a pipeline stage receives as shards is gathered only once,
// since many layers share that value.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "lib/Autodiff/SavedValues.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Autodiff/Passes.h"
#include "partita/Support/StableSort.h"

namespace partita {
#define GEN_PASS_DEF_GATHERAGAINPASS
#include "partita/Autodiff/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct GatherAgain : partita::impl::GatherAgainPassBase<GatherAgain> {
  using GatherAgainPassBase::GatherAgainPassBase;

  void runOnOperation() override {
    if (!llvm::is_contained({"none", "no-shard", "shard-grad-op", "full-shard"},
                            strategy.getValue())) {
      getOperation().emitError()
          << "fsdp strategy '" << strategy
          << "' is unknown; known: none, no-shard, shard-grad-op, full-shard";
      return signalPassFailure();
    }
    auto named = analysis::parametersNamed(getOperation(), keep, "keep-gathered");
    if (failed(named))
      return signalPassFailure();
    kept = std::move(*named);
    bool gathersAny = false, losesAny = false;
    getOperation().walk([&](GatherInterface gather) {
      gathersAny |= gather.gathersParameters();
      losesAny |= gather.gathersParameters() && !isKept(gather);
    });
    if (always && gathersAny && !losesAny) {
      getOperation().emitError()
          << "--gather-always: has no effect, because all parameters that are "
             "gathered are kept, by --keep-gathered or the strategy; leave it out";
      return signalPassFailure();
    }
    if (hpz > 1 && !losesAny) {
      getOperation().emitError()
          << "--zero-hpz-partition-size: has no effect, because "
          << (gathersAny ? "--keep-gathered keeps all parameters in full from the forward to the "
                           "backward pass, which gathers none within a group"
                         : "no parameter is gathered: none has more elements than "
                           "--persistence-threshold")
          << "; leave it out";
      return signalPassFailure();
    }
    if (!kept.empty() && !gathersAny) {
      getOperation().emitError() << "keep-gathered: no parameter is gathered for its use; with "
                                    "--zero-stage 3 those above --persistence-threshold are";
      return signalPassFailure();
    }
    getOperation().walk([&](train::AccumulateOp loop) {
      if (loop.hasBackward())
        run(loop);
    });
  }

private:
  void run(train::AccumulateOp loop) {
    loop.simplifySaved();
    SmallVector<Operation *> activations, parameters;
    for (Operation &op : loop.getBody().front()) {
      auto gather = dyn_cast<GatherInterface>(op);
      if (gather && !gather.gathersParameters() && !op.getOperand(0).getDefiningOp<pipe::MoveOp>())
        activations.push_back(&op);
      if (gather && gather.gathersParameters() && !isKept(&op) && !isSecondaryCopy(&op))
        parameters.push_back(&op);
    }
    // Recomputed ops read parameters in the backward pass, so activations come first.
    llvm::for_each(activations, [&](Operation *op) { split(loop, op); });
    // Of parameters that are gathered over one axis after another, the last gather's operand is only
    // saved by its own repetition.
    stableSort(parameters, [](Operation *a, Operation *b) { return heightOf(a) < heightOf(b); });
    llvm::for_each(parameters, [&](Operation *op) { split(loop, op); });
    loop.simplifySaved();
  }

  /// Returns how many gathers of parameters follow this one.
  static int heightOf(Operation *gather) {
    int height = 0;
    for (Operation *user : gather->getUsers())
      if (gathersParameters(user))
        height = std::max(height, heightOf(user) + 1);
    return height;
  }

  /// Returns true if the gathered value stays saved. The operand may be a parameter's shards, or an
  /// `f` of them over another axis.
  bool isKept(Operation *gather) {
    if (strategy == "shard-grad-op" || kept.empty())
      return strategy == "shard-grad-op";
    FlatSymbolRefAttr name = train::parameterReadBy(gather->getOperand(0));
    auto parameter = name ? SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(gather, name)
                          : train::ParameterOp();
    return parameter && kept.contains(parameter);
  }

  static bool isSecondaryCopy(Operation *gather) {
    auto collective = dyn_cast<CollectiveInterface>(gather);
    return collective &&
           zero::isSecondaryCopy(gather->getResult(0).getType(), collective.getAxisAttr());
  }

  llvm::SetVector<train::ParameterOp> kept;

  static bool gathersParameters(Operation *op) {
    auto gather = dyn_cast_or_null<GatherInterface>(op);
    return gather && gather.gathersParameters();
  }

  /// Returns true if an op of the backward pass uses a gathered parameter.
  static bool needsParameter(Operation &op) {
    return llvm::any_of(op.getOperands(), [](Value operand) {
      Operation *gather = train::forwardOf(operand).getDefiningOp();
      return gathersParameters(gather) && train::parameterReadBy(gather->getOperand(0));
    });
  }

  /// Returns true if the gathered parameter is still alive when the backward pass gets to it.
  bool meets(Operation *gather, Operation *first) const {
    if (always || !gathersParameters(gather))
      return false;
    return llvm::none_of(llvm::make_range(first->getBlock()->begin(), first->getIterator()),
                         needsParameter);
  }

  /// Returns the backward pass's arguments for an op's results; empty if it needs none. An
  /// activation that the backward pass only uses through views stays saved: it is a mask, whose
  /// gather costs more than its memory.
  static SmallVector<BlockArgument> savedOf(train::AccumulateOp loop, Operation *op) {
    SmallVector<BlockArgument> arguments;
    for (auto [number, value] : llvm::enumerate(loop.getSaved()))
      if (value.getDefiningOp() == op &&
          (gathersParameters(op) ||
           !llvm::all_of(loop.getSavedArgument(number).getUsers(), autodiff::isFree)))
        arguments.push_back(loop.getSavedArgument(number));
    return arguments;
  }

  /// Splits a gather, with what is recomputed from it, if both passes use it.
  void split(train::AccumulateOp loop, Operation *op) {
    SmallVector<Operation *> made{op};
    bool forward = false;
    for (Operation *user : op->getUsers()) {
      forward |= !isa<train::YieldOp>(user);
      if (!gathersParameters(op) && isCheap(user, op) && !savedOf(loop, user).empty() &&
          !llvm::is_contained(made, user))
        made.push_back(user);
    }
    llvm::sort(made, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    Operation *first = nullptr;
    for (Operation *each : made)
      for (BlockArgument argument : savedOf(loop, each))
        if (Operation *user = analysis::firstUseOf(argument);
            user && (!first || user->isBeforeInBlock(first)))
          first = user;
    if (!forward || !first || meets(op, first))
      return;
    OpBuilder builder(first);
    IRMapping mapping, free;
    for (Operation *each : made) {
      for (Value operand : each->getOperands())
        if (!mapping.contains(operand))
          mapping.map(operand, autodiff::inBackward(builder, loop, operand, free));
      Operation *again = builder.clone(*each, mapping);
      if (each == op)
        cast<GatherInterface>(again).setAgain(true);
      again->setLoc(provenance::backward(each->getLoc()));
      for (BlockArgument argument : savedOf(loop, each))
        argument.replaceAllUsesWith(
            again->getResult(cast<OpResult>(train::forwardOf(argument)).getResultNumber()));
    }
    ++gathered;
  }

  /// Returns true for a forward op that is no matmul and computes from the gathered value and
  /// operands that are small compared to it.
  static bool isCheap(Operation *op, Operation *gather) {
    std::string error;
    if (!isa<ShardInterface>(op) || isa<pipe::PipeDialect>(op->getDialect()) || !isPure(op) ||
        op->getBlock() != gather->getBlock())
      return false;
    const ShardRule *rule = par::ruleOf(op, error);
    if (!rule || rule->reduces())
      return false;
    int64_t others = 0;
    for (Value operand : op->getOperands())
      others += operand.getDefiningOp() == gather ? 0 : bytesOf(operand.getType());
    return others < bytesOf(gather->getResult(0).getType());
  }
};

} // namespace
