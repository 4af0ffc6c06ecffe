//===- Materialize.cpp - writes placements into types, inserts f and g ------------------------===//
//
// Sweeps over each function twice. Backward: finds the operands that must be replicated
// (ReplicatedUses.h). Forward: derives each op's result placements from its operands' by its rule.
// An invariant operand that must be replicated gets f; a partial sum in which the op is not linear
// gets g.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Reasons.h"
#include "dialects/Train/Train.h"
#include "lib/Partition/Causes.h"
#include "lib/Partition/ReplicatedUses.h"
#include "lib/Partition/Seeds.h"
#include "lib/Partition/SeparateBlocks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONMATERIALIZEPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using par::Kind;
using par::Layout;

namespace {

class Materialization {
public:
  Materialization(func::FuncOp function, par::MeshAttr mesh)
      : function(function), mesh(mesh),
        cotangents(!function->hasAttr(par::ParDialect::kNoCotangents)),
        uses(function, mesh, cotangents), causes(function) {}

  LogicalResult run() {
    for (BlockArgument argument : function.getArguments())
      if (failed(retypeArgument(argument)))
        return failure();
    if (failed(block(function.getBody().front())))
      return failure();
    function.setType(
        FunctionType::get(function.getContext(), function.getBody().front().getArgumentTypes(),
                          function.getBody().front().getTerminator()->getOperandTypes()));
    causes.write();
    return success();
  }

  unsigned fCount = 0, gCount = 0;

private:
  LogicalResult retype(Value value, const Layout &layout) {
    auto type = cast<RankedTensorType>(value.getType());
    auto local = layout.localType(type.getElementType(), mesh,
                                  [&](const Twine &error) { emitError(value.getLoc()) << error; });
    if (failed(local))
      return failure();
    value.setType(*local);
    return success();
  }

  /// Inputs must be split evenly, since callers know nothing of padding.
  LogicalResult retypeArgument(BlockArgument argument) {
    Layout layout = uses.wanted(argument);
    for (auto [dim, axes] : llvm::enumerate(layout.splits))
      for (const par::AxisSplit &split : axes)
        if (int64_t size = mesh.sizeOf(split.axis.getValue());
            axes.size() == 1 && layout.shape[dim] / split.blocks.count % size != 0)
          return emitError(argument.getLoc())
                 << "dimension " << dim << " of size " << layout.shape[dim]
                 << " does not divide over mesh axis " << split.axis.getValue() << " of size "
                 << size;
    LogicalResult done = retype(argument, layout);
    causes.source(argument);
    function.removeArgAttr(argument.getArgNumber(), kArgumentSplit);
    return done;
  }

  LogicalResult block(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      if (failed(operation(&op)))
        return failure();
    return success();
  }

  LogicalResult operation(Operation *op) {
    if (isa<par::FOp, par::GOp, par::MaxOp, par::FirstIndexOp>(op))
      return success(); // inserted by this sweep
    if (op->getNumRegions() != 0)
      return region(op);
    if (hasRule(op)) {
      if (failed(rule(op)))
        return failure();
      if (isBlockOfParameter(op))
        enterUses(op->getResult(0));
      return success();
    }
    if (auto reshard = dyn_cast<par::ReshardInterface>(op))
      return move(reshard);
    if (auto exchanged = dyn_cast<par::AllToAllOp>(op))
      return exchange(exchanged);
    if (isa<train::ReadOp>(op)) {
      Value value = op->getResult(0);
      if (failed(retype(value, uses.wanted(value))))
        return failure();
      op->removeAttr(kResultSplits);
      causes.source(value);
      enterUses(value);
      return success();
    }
    if (isa<train::YieldOp>(op))
      return success(); // sums of partial sums are partial
    for (OpOperand &operand : op->getOpOperands())
      complete(operand, op);
    return success();
  }

  /// Inserts f only for the uses that need it: other uses, e.g. of a table that is both looked up
  /// and multiplied, may need the invariant value.
  void enterUses(Value value) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses()))
      for (StringAttr axis : mesh.getAxes())
        if (uses.contains(use, axis))
          use.set(insertF(use.get(), axis, use.getOwner()));
  }

  /// Places a gather or narrow, which seeds insert where a use needs another placement than the
  /// definition has.
  LogicalResult move(par::ReshardInterface op) {
    StringAttr axis = op.getAxisAttr();
    OpOperand &value = op->getOpOperand(0);
    Kind wanted = op.getOperandKind();
    if (wanted != Kind::Partial && isIncomplete(value.get(), axis))
      value.set(insertG(value.get(), axis, op));
    for (StringAttr each : mesh.getAxes())
      if (uses.contains(value, each) &&
          Layout::of(value.get().getType()).kind(each) == Kind::Invariant)
        value.set(insertF(value.get(), each, op));
    Layout layout = Layout::of(value.get().getType());
    if (layout.kind(axis) == Kind::Replicated && !cotangents)
      layout.set(axis, Kind::Invariant);
    bool isRight = layout.kind(axis) == wanted ||
                   (isa<par::NarrowOp>(op) && layout.kind(axis) == Kind::Replicated);
    if (!isRight) {
      InFlightDiagnostic error = op->emitError();
      error << "over " << axis << " wants a value that is " << par::toString(wanted) << ", it is "
            << par::toString(layout.kind(axis));
      par::attachReasons(error, "it", axis, par::traceReasons(value.get(), axis));
      return error;
    }
    if (op.gathers())
      layout.set(axis, Kind::Invariant);
    else
      layout.shard(axis, op.getDim(), op.getShardBlocks());
    op->removeAttr(kResultSplits);
    LogicalResult done = retype(op->getResult(0), layout);
    causes.moved(op);
    return done;
  }

  /// Places an exchange of blocks: a shard along one dimension becomes one along another.
  LogicalResult exchange(par::AllToAllOp op) {
    StringAttr axis = op.getAxisAttr();
    Layout layout = Layout::of(op.getValue().getType());
    if (layout.dimOf(axis) != static_cast<int>(op.getFrom()))
      return op.emitError() << "over " << axis << " wants a shard along dimension " << op.getFrom()
                            << ", it is " << op.getValue().getType();
    layout.shard(axis, op.getTo(), op.blocksAlong(op.getTo()));
    op->removeAttr(kResultSplits);
    LogicalResult done = retype(op.getResult(), layout);
    causes.same(op.getResult(), op.getValue());
    return done;
  }

  /// Completes partial sums at ops that are not linear: a minimized or returned value.
  void complete(OpOperand &operand, Operation *op) {
    for (StringAttr axis : mesh.getAxes())
      if (isIncomplete(operand.get(), axis))
        operand.set(insertG(operand.get(), axis, op));
  }

  LogicalResult region(Operation *op) {
    for (const FlowEdge &edge : entryEdges(op)) {
      Layout outer = Layout::of(edge.outer.getType()), inner = outer;
      inner.shape.erase(inner.shape.begin(), inner.shape.begin() + edge.dropped);
      inner.splits.erase(inner.splits.begin(), inner.splits.begin() + edge.dropped);
      if (failed(retype(edge.inner, inner)))
        return failure();
      causes.same(edge.inner, edge.outer);
    }
    for (Region &region : op->getRegions())
      for (Block &inner : region)
        if (failed(block(inner)))
          return failure();
    for (FlowEdge edge : exitEdges(op)) {
      edge.outer.setType(edge.inner.getType());
      causes.same(edge.outer, edge.inner);
    }
    return success();
  }

  LogicalResult rule(Operation *op) {
    std::string error;
    const ShardRule *rule = par::ruleOf(op, error);
    SmallVector<Layout, 2> results;
    for (Value result : op->getResults())
      results.push_back(uses.wanted(result));
    for (StringAttr axis : mesh.getAxes())
      if (isBetterCompleted(op, *rule, axis))
        complete(op, axis);
    // Every round repairs one operand over one axis, which bounds the number of rounds.
    size_t rounds = (op->getNumOperands() + 1) * (mesh.getAxes().size() + 1) + 1;
    for (size_t round = 0;; ++round) {
      SmallVector<Layout, 2> operands, placed = results;
      SmallVector<bool> carries;
      for (Value operand : op->getOperands()) {
        operands.push_back(Layout::of(operand.getType()));
        carries.push_back(cotangents && par::isDifferentiable(operand.getType()));
      }
      par::RuleProblem problem;
      if (par::placeResults(*rule, operands, carries, placed, problem)) {
        SmallVector<int64_t> sizes;
        if (par::letterSizes(*rule, op, sizes, error))
          error = par::unevenProblem(op, *rule, sizes, operands, placed, mesh);
        if (!error.empty())
          return op->emitError() << "cannot be split: " << error << " (rule '"
                                 << cast<ShardInterface>(op).getShardRule() << "')";
        for (auto [result, layout] : llvm::zip(op->getResults(), placed)) {
          if (!par::isDifferentiable(result.getType()))
            layout = layout.valueOnly();
          if (failed(retype(result, layout)))
            return failure();
        }
        break;
      }
      if (round == rounds || !repair(op, problem))
        return refuse(op, problem);
    }
    op->removeAttr(kResultSplits);
    causes.placed(op, *rule);
    cast<ShardInterface>(op).localize();
    return success();
  }

  LogicalResult refuse(Operation *op, const par::RuleProblem &problem) {
    InFlightDiagnostic error = op->emitError();
    StringRef axis = problem.axis ? problem.axis.getValue() : "";
    bool combines = combinesShards(op, problem), ofSamples = combines && splitsSamples(op, problem);
    error << "cannot be split: ";
    if (ofSamples)
      error << "it needs the samples of all ranks of " << axis
            << ", and each rank has only its own; ";
    error << problem.text << " (rule '" << cast<ShardInterface>(op).getShardRule() << "')";
    if (ofSamples && isOfIntegers(op))
      error << "; ranks combine floats, not integers: convert them first, x.float(), or leave "
            << axis << " at 1";
    else if (ofSamples)
      error << "; write it so that it works within a sample, or leave " << axis << " at 1";
    else if (combines)
      error << "; it would need what other ranks of " << axis << " have: leave " << axis << " at 1";
    par::attachReasons(error, op, problem);
    return error;
  }

  static bool isOfIntegers(Operation *op) {
    return llvm::all_of(op->getResultTypes(), [](Type type) {
      auto element = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
      return element && element.getWidth() > 1;
    });
  }

  /// Returns true if the operands in question are shards. Then the rule was rejected because the op
  /// would have to combine them with shards of other ranks.
  static bool combinesShards(Operation *op, const par::RuleProblem &problem) {
    auto isShard = [&](int operand) {
      return Layout::of(op->getOperand(operand).getType()).dimOf(problem.axis) >= 0;
    };
    int about[] = {problem.operand, problem.against};
    return problem.axis && llvm::any_of(about, [](int each) { return each >= 0; }) &&
           llvm::all_of(about, [&](int each) { return each < 0 || isShard(each); });
  }

  /// Returns true if one of the operands is split because the axis splits the first dimension of
  /// the model's input.
  static bool splitsSamples(Operation *op, const par::RuleProblem &problem) {
    return llvm::any_of(ArrayRef({problem.operand, problem.against}), [&](int operand) {
      if (operand < 0)
        return false;
      SmallVector<par::ReasonStep> steps = par::traceReasons(op->getOperand(operand), problem.axis);
      return !steps.empty() && !steps.back().op && steps.back().dim == 0;
    });
  }

  /// Gives the operand that the rule rejects the placement that the rule needs, if f or g can.
  bool repair(Operation *op, const par::RuleProblem &problem) {
    auto kindOf = [&](unsigned i) {
      return Layout::of(op->getOperand(i).getType()).kind(problem.axis);
    };
    if (problem.operand < 0)
      return false;
    unsigned i = problem.operand;
    if (problem.wanted == Kind::Replicated && kindOf(i) == Kind::Invariant) {
      op->setOperand(i, insertF(op->getOperand(i), problem.axis, op));
      return true;
    }
    return complete(op, problem.axis); // not linear in it, or adds it to a complete value
  }

  bool complete(Operation *op, StringAttr axis) {
    bool any = false;
    for (OpOperand &operand : op->getOpOperands())
      if (isIncomplete(operand.get(), axis)) {
        operand.set(insertG(operand.get(), axis, op));
        any = true;
      }
    return any;
  }

  Value insertF(Value value, StringAttr axis, Operation *user) {
    Value entered = insert<par::FOp>(value, axis, Kind::Replicated,
                                     inLayerOf(value.getLoc(), user->getLoc()), fCount);
    causes.enters(entered.getDefiningOp(),
                  isOfParameters(value) ? par::Role::Parameter : par::Role::Share, user, axis);
    return entered;
  }

  /// Returns true if the value depends only on parameters, perhaps through an f over another axis.
  bool isOfParameters(Value value) const {
    while (auto f = value.getDefiningOp<par::FOp>())
      value = f.getValue();
    return uses.isIndependent(value);
  }

  static bool isIncomplete(Value value, StringAttr axis) {
    Kind kind = Layout::of(value.getType()).kind(axis);
    return kind == Kind::Partial || kind == Kind::Max;
  }

  Value insertG(Value value, StringAttr axis, Operation *before) {
    bool isNew = !conjugates.lookup({value, axis});
    bool isMax = Layout::of(value.getType()).kind(axis) == Kind::Max;
    Location loc = inLayerOf(before->getLoc(), value.getLoc());
    Value complete = isMax ? insert<par::MaxOp>(value, axis, Kind::Invariant, loc, gCount)
                           : insert<par::GOp>(value, axis, Kind::Invariant, loc, gCount);
    if (isNew)
      causes.completes(complete.getDefiningOp(), value, axis);
    return complete;
  }

  /// Inserts a conjugate at the value's definition, once per axis.
  template <typename Op>
  Value insert(Value value, StringAttr axis, Kind after, Location loc, unsigned &count) {
    Value &known = conjugates[{value, axis}];
    if (known)
      return known;
    OpBuilder builder(function.getContext());
    builder.setInsertionPointAfterValue(value);
    Layout layout = Layout::of(value.getType());
    layout.set(axis, after);
    ++count;
    return known = Op::create(builder, loc, par::withLayout(value.getType(), layout), value, axis)
                       .getResult();
  }

  func::FuncOp function;
  par::MeshAttr mesh;
  bool cotangents;
  ReplicatedUses uses;
  llvm::DenseMap<std::pair<Value, StringAttr>, Value> conjugates;
  Causes causes;
};

/// Places each initial value like its symbol's reads, since @init writes what the other functions
/// read.
void placeInitialValues(ModuleOp module) {
  llvm::DenseMap<StringAttr, Type> types;
  module.walk([&](train::ReadOp read) {
    types.try_emplace(read.getSymbolAttr().getAttr(), read.getType());
  });
  module.walk([&](train::InitialValueOp initial) {
    if (Type type = types.lookup(initial.getSymbolAttr().getAttr()))
      initial.getResult().setType(cast<RankedTensorType>(type));
  });
}

struct PartitionMaterialize : partita::impl::PartitionMaterializePassBase<PartitionMaterialize> {
  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    par::MeshAttr mesh = par::MeshAttr::of(getOperation());
    for (auto parameter : getOperation().getOps<train::ParameterOp>()) {
      parameter->removeAttr(kArgumentSplit); // their reads have it
      parameter->removeAttr(kKeepFull);
    }
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      // Only a program that minimizes a value has cotangents.
      if (function.walk([](train::MinimizeOp) { return WalkResult::interrupt(); })
              .wasInterrupted() == false)
        function->setAttr(par::ParDialect::kNoCotangents, UnitAttr::get(&getContext()));
      Materialization materialization(function, mesh);
      if (failed(materialization.run()))
        return signalPassFailure();
      fInserted += materialization.fCount;
      gInserted += materialization.gCount;
    }
    for (auto parameter : getOperation().getOps<train::ParameterOp>())
      parameter->removeAttr(kSeeds);
    placeInitialValues(getOperation());
  }
};

} // namespace
