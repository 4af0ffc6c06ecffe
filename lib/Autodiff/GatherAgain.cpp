//===- GatherAgain.cpp - the backward pass gathers for itself ---------------------------------===//
//
// A gathered value (an activation, a parameter) on the list of saved values of train.accumulate lives
// from the forward pass to the backward pass. Its shard is a rank's share of it: the backward pass gets
// the shard and a gather of its own, right before the first use, marked `again` so that nothing joins
// it with the forward pass's, unless the first use comes before the backward pass needs any
// other parameter (the classifier's weights). So is what norms made of a gathered activation (of a
// block whose branches run side by side): the backward pass computes it again from its own gather.
// What a pipeline stage receives as shards is gathered once: there is one such value for many layers.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "lib/Autodiff/SavedValues.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Autodiff/Passes.h"

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
          << "gather-always: has no effect, because all parameters that are "
             "gathered are kept, by keep-gathered or the strategy; leave it out";
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
      if (gather && gather.gathersParameters() && !isKept(&op))
        parameters.push_back(&op);
    }
    // What is recomputed reads parameters in the backward pass.
    llvm::for_each(activations, [&](Operation *op) { split(loop, op); });
    llvm::for_each(parameters, [&](Operation *op) { split(loop, op); });
    loop.simplifySaved();
  }

  /// A gather of one parameter's shards, perhaps through `f`s of other axes.
  bool isKept(Operation *gather) {
    if (strategy == "shard-grad-op" || kept.empty())
      return strategy == "shard-grad-op";
    FlatSymbolRefAttr name = train::parameterReadBy(gather->getOperand(0));
    auto parameter = name ? SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(gather, name)
                          : train::ParameterOp();
    return parameter && kept.contains(parameter);
  }

  llvm::SetVector<train::ParameterOp> kept;

  static bool gathersParameters(Operation *op) {
    auto gather = dyn_cast_or_null<GatherInterface>(op);
    return gather && gather.gathersParameters();
  }

  /// Does an op of the backward pass use a gathered parameter?
  static bool needsParameter(Operation &op) {
    return llvm::any_of(op.getOperands(), [](Value operand) {
      Operation *gather = train::forwardOf(operand).getDefiningOp();
      return gathersParameters(gather) && train::parameterReadBy(gather->getOperand(0));
    });
  }

  /// Is the gathered parameter still there when the backward pass comes to it?
  bool meets(Operation *gather, Operation *first) const {
    if (always || !gathersParameters(gather))
      return false;
    return llvm::none_of(llvm::make_range(first->getBlock()->begin(), first->getIterator()),
                         needsParameter);
  }

  /// What the backward pass has of an op's results; empty where it needs none. An activation that it
  /// uses through views alone stays saved: a mask, for which a gather costs more than its memory.
  static SmallVector<BlockArgument> savedOf(train::AccumulateOp loop, Operation *op) {
    SmallVector<BlockArgument> arguments;
    for (auto [number, value] : llvm::enumerate(loop.getSaved()))
      if (value.getDefiningOp() == op &&
          (gathersParameters(op) ||
           !llvm::all_of(loop.getSavedArgument(number).getUsers(), autodiff::isFree)))
        arguments.push_back(loop.getSavedArgument(number));
    return arguments;
  }

  /// Splits a gather, with what is recomputed of it, where both passes use it.
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

  /// Is a forward op made of a gathered value and of what is small beside it, and no matmul?
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
