//===- Materialize.cpp - placements into types, f and g where the rules demand them -----------===//
//
// Two sweeps over each function.
//
// Backward: which values must be replicated, per axis? Those that an op lacks a split letter of (it
// splits over the axis, the value does not). If such a value depends on parameters and constants
// alone, what computed it must be replicated too, and so on up to the parameters: there f stands
// once, at the definition, outside of the loop over micro-batches. A value that depends on data
// gets f where it is, unless all that it depends on, up to values that get f anyway, may be
// replicated: key heads that all ranks compute from the input that their query heads have f of.
//
// Forward: each op's rule gives its results' placements from its operands'. An operand that ought
// to be replicated and is invariant gets f; a partial sum that the op is not linear in gets g.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Reasons.h"
#include "dialects/Train/Train.h"
#include "lib/Partition/Causes.h"
#include "lib/Partition/Flow.h"
#include "lib/Partition/Seeds.h"
#include "lib/Partition/SeparateBlocks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Iterators.h"
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
        cotangents(!function->hasAttr(par::ParDialect::kNoCotangents)), independent(function),
        causes(function) {}

  LogicalResult run() {
    if (cotangents) {
      for (StringAttr axis : mesh.getAxes())
        findClosed(axis);
      function.walk<WalkOrder::PostOrder, mlir::ReverseIterator>(
          [&](Operation *op) { demand(op); });
    }
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
  //===- backward: what must be replicated

  /// The splits that propagation wrote for a value.
  Layout wanted(Value value) {
    Layout layout(cast<RankedTensorType>(value.getType()).getShape());
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner()->getParentOp() == function)
        if (auto split = function.getArgAttrOfType<par::PlacementAttr>(argument.getArgNumber(),
                                                                       kArgumentSplit))
          layout.splits = Layout::of(split).splits;
      for (const FlowEdge &edge : entryEdges(argument.getOwner()->getParentOp()))
        if (edge.inner == value) {
          auto outer = wanted(edge.outer).splits;
          layout.splits.assign(outer.begin() + edge.dropped, outer.end());
        }
      return layout;
    }
    auto result = cast<OpResult>(value);
    if (auto splits = result.getOwner()->getAttrOfType<ArrayAttr>(kResultSplits))
      if (auto split = dyn_cast<par::PlacementAttr>(splits[result.getResultNumber()]))
        layout.splits = Layout::of(split).splits;
    return layout;
  }

  /// The letter of an op's rule that `axis` splits, or -1.
  int letterOf(Operation *op, const ShardRule &rule, StringAttr axis) {
    SmallVector<int64_t> sizes;
    std::string error;
    if (!par::letterSizes(rule, op, sizes, error))
      return -1;
    int letter = -1;
    auto visit = [&](const RulePattern &pattern, Value value) {
      Layout layout = wanted(value);
      if (int dim = layout.dimOf(axis); dim >= 0)
        if (auto split = par::splitLetter(pattern.dims[dim], layout.blocksOf(axis), sizes))
          letter = static_cast<int>(split->letter);
    };
    for (auto [pattern, value] : llvm::zip(rule.operands, op->getOperands()))
      visit(pattern, value);
    for (auto [pattern, value] : llvm::zip(rule.results, op->getResults()))
      visit(pattern, value);
    return letter;
  }

  /// The largest set of ops, no letter of which is split over the axis, such that all uses of their
  /// results want them replicated or are in the set, and all operands depend on parameters alone,
  /// get f anyway, or come from the set.
  void findClosed(StringAttr axis) {
    SmallVector<Operation *> ops;
    llvm::DenseSet<Operation *> set;
    llvm::DenseSet<OpOperand *> lacking; // a letter that is split
    llvm::DenseSet<Value> getsF;
    function.walk([&](Operation *op) {
      std::string error;
      if (!hasRule(op))
        return;
      auto rule = par::ruleOf(op, error);
      int letter = letterOf(op, *rule, axis);
      if (letter < 0) {
        ops.push_back(op);
        set.insert(op);
        return;
      }
      for (auto [pattern, operand] : llvm::zip(rule->operands, op->getOpOperands()))
        if (!pattern.contains(letter) && par::isDifferentiable(operand.get().getType())) {
          lacking.insert(&operand);
          getsF.insert(operand.get());
        }
    });
    auto usesWant = [&](Operation *op) {
      return llvm::all_of(op->getUses(), [&](OpOperand &use) {
        return lacking.contains(&use) || set.contains(use.getOwner());
      });
    };
    auto operandsMay = [&](Operation *op) {
      return llvm::all_of(op->getOperands(), [&](Value operand) {
        return !par::isDifferentiable(operand.getType()) || independent(operand) ||
               getsF.contains(operand) || set.contains(operand.getDefiningOp());
      });
    };
    for (size_t before = set.size() + 1; set.size() < before;) {
      before = set.size();
      for (Operation *op : llvm::reverse(ops))
        if (!usesWant(op))
          set.erase(op);
      for (Operation *op : ops)
        if (!operandsMay(op))
          set.erase(op);
    }
    for (Operation *op : set)
      closed.insert({op, axis});
  }

  /// Do all uses want it replicated? (Layers that are whole beside those that are split may not.)
  bool allWant(Value value, StringAttr axis) {
    return llvm::all_of(value.getUses(), [&](OpOperand &use) {
      return replicatedUses.contains({&use, axis});
    });
  }

  void demand(Operation *op) {
    if (!hasRule(op))
      return;
    std::string error;
    auto rule = par::ruleOf(op, error);
    for (StringAttr axis : mesh.getAxes()) {
      int letter = letterOf(op, *rule, axis);
      bool replicatedResult = llvm::any_of(op->getResults(), [&](Value result) {
        return replicated.contains({result, axis}) && !isBlockOfParameter(op) &&
               (closed.contains({op, axis}) || (independent(result) && allWant(result, axis)));
      });
      for (auto [pattern, use] : llvm::zip(rule->operands, op->getOpOperands())) {
        Value value = use.get();
        if (par::isDifferentiable(value.getType()) && wanted(value).dimOf(axis) < 0 &&
            (letter >= 0 ? !pattern.contains(letter) : replicatedResult)) {
          replicated.insert({value, axis});
          replicatedUses.insert({&use, axis});
        }
      }
    }
  }

  //===- forward: types

  LogicalResult retype(Value value, const Layout &layout) {
    auto type = cast<RankedTensorType>(value.getType());
    auto local = layout.localType(type.getElementType(), mesh,
                                  [&](const Twine &error) { emitError(value.getLoc()) << error; });
    if (failed(local))
      return failure();
    value.setType(*local);
    return success();
  }

  /// Who fills inputs knows no padding: they are split evenly.
  LogicalResult retypeArgument(BlockArgument argument) {
    Layout layout = wanted(argument);
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
    if (auto gather = dyn_cast<par::AllGatherOp>(op))
      return move(gather);
    if (auto narrow = dyn_cast<par::NarrowOp>(op))
      return move(narrow);
    if (isa<train::ReadOp>(op)) {
      Value value = op->getResult(0);
      if (failed(retype(value, wanted(value))))
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

  /// f where a use wants it alone: another one, of a table that is looked up and multiplied with,
  /// may want the invariant value.
  void enterUses(Value value) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses()))
      for (StringAttr axis : mesh.getAxes())
        if (replicatedUses.contains({&use, axis}))
          use.set(insertF(use.get(), axis, use.getOwner()));
  }

  /// A gather or a narrow, which seeds put where a value's use wants another placement than its
  /// definition.
  template <typename Op> LogicalResult move(Op op) {
    bool isGather = std::is_same_v<Op, par::AllGatherOp>;
    StringAttr axis = op.getAxisAttr();
    if (isIncomplete(op.getValue(), axis))
      op.getValueMutable().assign(insertG(op.getValue(), axis, op));
    Layout layout = Layout::of(op.getValue().getType());
    Kind wanted = isGather ? Kind::Sharded : Kind::Invariant;
    if (layout.kind(axis) == Kind::Replicated && !cotangents)
      layout.set(axis, Kind::Invariant);
    if (layout.kind(axis) != wanted) {
      InFlightDiagnostic error = op->emitError();
      error << "over " << axis << " wants a value that is " << par::toString(wanted) << ", it is "
            << par::toString(layout.kind(axis));
      par::attachReasons(error, "it", axis, par::traceReasons(op.getValue(), axis));
      return error;
    }
    if (isGather)
      layout.set(axis, Kind::Invariant);
    else
      layout.shard(axis, op.getDim(), op.getBlocks());
    op->removeAttr(kResultSplits);
    LogicalResult done = retype(op.getResult(), layout);
    causes.moved(op);
    return done;
  }

  /// Ends partial sums where nothing is linear any more: a minimized or returned value.
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
    auto rule = par::ruleOf(op, error);
    SmallVector<Layout, 2> results;
    for (Value result : op->getResults())
      results.push_back(wanted(result));
    for (StringAttr axis : mesh.getAxes())
      if (isBetterCompleted(op, *rule, axis))
        complete(op, axis);
    // Every round repairs one operand over one axis, so there are at most as many as both.
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
    error << "cannot be split: " << problem.text << " (rule '"
          << cast<ShardInterface>(op).getShardRule() << "')";
    if (problem.axis && problem.operand < 0)
      error << "; it would need what other ranks of " << problem.axis.getValue()
            << " have: write it so that it works within a sample, or leave "
            << problem.axis.getValue() << " at 1";
    par::attachReasons(error, op, problem);
    return error;
  }

  /// Makes the operand that a rule complains of what the rule wants, if f or g can.
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
    return complete(op, problem.axis); // not linear in it, or a sum of it and something complete
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
    causes.enters(entered.getDefiningOp(), isOfParameters(value) ? "parameter" : "share", user,
                  axis);
    return entered;
  }

  /// Does it depend on parameters alone, perhaps with an f over another axis?
  bool isOfParameters(Value value) const {
    while (auto f = value.getDefiningOp<par::FOp>())
      value = f.getValue();
    return independent(value);
  }

  static bool isIncomplete(Value value, StringAttr axis) {
    Kind kind = Layout::of(value.getType()).kind(axis);
    return kind == Kind::Partial || kind == Kind::Max;
  }

  Value insertG(Value value, StringAttr axis, Operation *before) {
    bool isNew = !conjugates.lookup({value, axis});
    bool isMax = Layout::of(value.getType()).kind(axis) == Kind::Max;
    Location loc = inLayerOf(before->getLoc(), value.getLoc());
    Value complete = isMax
                         ? insert<par::MaxOp>(value, axis, Kind::Invariant, loc, gCount)
                         : insert<par::GOp>(value, axis, Kind::Invariant, loc, gCount);
    if (isNew)
      causes.completes(complete.getDefiningOp(), value, axis);
    return complete;
  }

  /// A conjugate at the value's definition, once per axis.
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
  DataIndependence independent;
  llvm::DenseSet<std::pair<Value, StringAttr>> replicated;
  llvm::DenseSet<std::pair<OpOperand *, StringAttr>> replicatedUses;
  llvm::DenseSet<std::pair<Operation *, StringAttr>> closed;
  llvm::DenseMap<std::pair<Value, StringAttr>, Value> conjugates;
  Causes causes;
};

/// @init writes what the other functions read, so an initial value is placed as its symbol's reads
/// are.
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
      parameter->removeAttr(kKeepWhole);
    }
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      // Only a program that minimizes something has cotangents.
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
