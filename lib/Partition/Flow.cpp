//===- Flow.cpp - how values flow through region ops ------------------------------------------------===//

#include "lib/Partition/Flow.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace partita;

SmallVector<FlowEdge> partita::entryEdges(Operation *op) {
  SmallVector<FlowEdge> edges;
  if (auto accumulate = dyn_cast<train::AccumulateOp>(op))
    for (auto [batch, argument] : llvm::zip(accumulate.getBatches(), accumulate.getBody().getArguments()))
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

bool DataIndependence::operator()(Value value) {
  auto [entry, isNew] = known.try_emplace(value, false);
  if (!isNew)
    return entry->second;
  Operation *op = value.getDefiningOp();
  bool independent = op && op->getNumRegions() == 0 &&
                     llvm::all_of(op->getOperands(), [&](Value operand) { return (*this)(operand); });
  known[value] = independent;
  return independent;
}
