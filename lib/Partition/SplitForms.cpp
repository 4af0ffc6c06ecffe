//===- SplitForms.cpp - replaces ops that cannot be split directly ----------------------------===//
//
// Runs the propagation and replaces each op with a split letter marked '!' or '^!' by its split
// form (ShardInterface), in full values, which the next propagation places like any other op.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "lib/Partition/Propagation.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONSPLITFORMSPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct PartitionSplitForms : partita::impl::PartitionSplitFormsPassBase<PartitionSplitForms> {
  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    par::MeshAttr mesh = par::MeshAttr::of(getOperation());
    Propagation propagation(getOperation(), mesh);
    if (failed(propagation.run()))
      return signalPassFailure();
    SmallVector<std::pair<Operation *, int64_t>> found;
    getOperation().walk([&](Operation *op) {
      if (hasRule(op))
        if (int64_t parts = splitParts(op, propagation, mesh); parts > 1)
          found.push_back({op, parts});
    });
    for (auto [op, parts] : found)
      if (failed(replace(op, parts)))
        return signalPassFailure();
  }

private:
  /// Returns how many parts the letter marked '!' is split into; 1 if it is not split. Several
  /// operands may have it, split over the same axes: every axis counts once.
  static int64_t splitParts(Operation *op, const Propagation &propagation, par::MeshAttr mesh) {
    const ShardRule &rule = propagation.ruleOf(op);
    llvm::SmallSetVector<StringAttr, 2> split;
    for (auto [pattern, operand] : llvm::zip(rule.operands, op->getOperands()))
      for (auto [dim, axes] : llvm::zip(pattern.dims, propagation.layoutOf(operand).splits))
        if (llvm::any_of(dim.letters, [&](unsigned l) { return rule.letters[l].byForm; }))
          for (const par::AxisSplit &axis : axes)
            split.insert(axis.axis);
    int64_t parts = 1;
    for (StringAttr axis : split)
      parts *= mesh.sizeOf(axis.getValue());
    return parts;
  }

  LogicalResult replace(Operation *op, int64_t parts) {
    OpBuilder builder(op);
    SmallVector<Value> results = cast<ShardInterface>(op).splitForm(builder, parts);
    if (results.size() != op->getNumResults())
      return op->emitError() << "'" << op->getName() << "' cannot be split into " << parts
                             << " parts here";
    op->replaceAllUsesWith(results);
    op->erase();
    ++replaced;
    return success();
  }
};

} // namespace
