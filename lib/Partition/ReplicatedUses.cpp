//===- ReplicatedUses.cpp - which operands must be replicated -----------------------------------===//

#include "lib/Partition/ReplicatedUses.h"

#include "lib/Partition/SeparateBlocks.h"
#include "mlir/IR/Iterators.h"

using namespace mlir;
using namespace partita;
using par::Layout;

ReplicatedUses::ReplicatedUses(func::FuncOp function, par::MeshAttr mesh, bool cotangents)
    : function(function), mesh(mesh), independent(function) {
  if (!cotangents)
    return;
  for (StringAttr axis : mesh.getAxes())
    findClosed(axis);
  function.walk<WalkOrder::PostOrder, mlir::ReverseIterator>([&](Operation *op) { demand(op); });
}

Layout ReplicatedUses::wanted(Value value) {
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

int ReplicatedUses::letterOf(Operation *op, const ShardRule &rule, StringAttr axis) {
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

void ReplicatedUses::findClosed(StringAttr axis) {
  SmallVector<Operation *> ops;
  llvm::DenseSet<Operation *> set;
  llvm::DenseSet<OpOperand *> lacking; // operands that lack a letter that is split
  llvm::DenseSet<Value> getsF;
  function.walk([&](Operation *op) {
    std::string error;
    if (!hasRule(op))
      return;
    const ShardRule *rule = par::ruleOf(op, error);
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

bool ReplicatedUses::allWant(Value value, StringAttr axis) {
  return llvm::all_of(value.getUses(),
                      [&](OpOperand &use) { return replicatedUses.contains({&use, axis}); });
}

/// A shard of a table of positions is narrowed from the replicated table, whose gradient is then summed once with
/// those of other parameters.
void ReplicatedUses::demandOf(par::NarrowOp narrow) {
  OpOperand &use = narrow.getValueMutable();
  Value value = use.get();
  if (!par::splits(narrow.getAxis(), par::Splits::Context) ||
      !par::isDifferentiable(value.getType()) || !independent(value))
    return;
  for (StringAttr axis : mesh.getAxes()) // also of a narrow of its shard, over another axis
    if (axis == narrow.getAxisAttr() || (par::splits(axis, par::Splits::Context) &&
                                         replicated.contains({narrow.getResult(), axis}))) {
      replicated.insert({value, axis});
      replicatedUses.insert({&use, axis});
    }
}

void ReplicatedUses::demand(Operation *op) {
  if (auto narrow = dyn_cast<par::NarrowOp>(op))
    return demandOf(narrow);
  if (!hasRule(op))
    return;
  std::string error;
  const ShardRule *rule = par::ruleOf(op, error);
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
