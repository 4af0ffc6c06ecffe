//===- Flow.cpp - how values flow through region ops ------------------------------------------===//

#include "lib/Partition/Flow.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace partita;

SmallVector<FlowEdge> partita::entryEdges(Operation *op) {
  SmallVector<FlowEdge> edges;
  if (auto accumulate = dyn_cast<train::AccumulateOp>(op))
    for (auto [batch, argument] :
         llvm::zip(accumulate.getBatches(), accumulate.getBody().getArguments()))
      edges.push_back({batch, argument, 1});
  return edges;
}

SmallVector<FlowEdge> partita::exitEdges(Operation *op) {
  SmallVector<FlowEdge> edges;
  if (auto accumulate = dyn_cast<train::AccumulateOp>(op)) {
    Operation *yield = accumulate.getBody().front().getTerminator();
    for (auto [sum, part] : llvm::zip(accumulate.getSums(), yield->getOperands()))
      edges.push_back({sum, part, 0});
  }
  return edges;
}

bool partita::hasRule(Operation *op) { return isa<ShardInterface>(op); }

DataIndependence::DataIndependence(Operation *root) {
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), [&](Value operand) {
          return independent.contains(operand);
        }))
      independent.insert(op->result_begin(), op->result_end());
  });
}

bool partita::isBetterCompleted(Operation *op, const ShardRule &rule, StringAttr axis) {
  auto isContracted = [](const RuleLetter &letter) { return letter.summed || letter.never; };
  if (op->getNumOperands() < 2 || llvm::none_of(rule.letters, isContracted))
    return false;
  int64_t sum = 0, otherwise = 0;
  for (Value result : op->getResults())
    otherwise += bytesOf(result.getType());
  for (Value operand : op->getOperands()) {
    par::Kind kind = par::Layout::of(operand.getType()).kind(axis);
    sum += kind == par::Kind::Partial ? bytesOf(operand.getType()) : 0;
    otherwise += kind == par::Kind::Invariant ? bytesOf(operand.getType()) : 0;
  }
  return sum > 0 && sum <= otherwise;
}
