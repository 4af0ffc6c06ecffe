//===- Flow.h - how values flow through region ops ----------------------------------*- C++ -*-===//
//
// The rules speak of ops without regions. What a region op does with placements, the passes of this
// folder ask here: which values stand for which.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_FLOW_H
#define PARTITA_LIB_PARTITION_FLOW_H

#include "dialects/Par/Placement.h"
#include "mlir/IR/Operation.h"

namespace partita {

/// Attribute names between the passes of this folder.
inline constexpr llvm::StringLiteral kArgumentSplit = "par.split";
inline constexpr llvm::StringLiteral kResultSplits = "par.splits";
/// On a parameter that no axis may split: the user's words.
inline constexpr llvm::StringLiteral kKeepWhole = "par.whole";

/// On a par.narrow of which it is not decided yet whether its result is split.
inline constexpr llvm::StringLiteral kUndecided = "par.undecided";

/// `inner` is `outer` without its first `dropped` dimensions.
struct FlowEdge {
  mlir::Value outer, inner;
  unsigned dropped;
};

/// The edges into and out of an op with a region (train.accumulate); empty for other ops.
llvm::SmallVector<FlowEdge> entryEdges(mlir::Operation *op);
llvm::SmallVector<FlowEdge> exitEdges(mlir::Operation *op);

/// Does the op follow a rule, or is it one that placements pass through or end at (reads, regions,
/// terminators)?
bool hasRule(mlir::Operation *op);

/// What a matmul makes of a partial sum and a full value could stay one, and so the gradient of
/// what it is multiplied with. Is the sum less than both?
bool isBetterCompleted(mlir::Operation *op, const ShardRule &rule, mlir::StringAttr axis);

/// The values of an op's regions that depend on nothing but parameters, states and constants.
class DataIndependence {
public:
  explicit DataIndependence(mlir::Operation *root);
  bool operator()(mlir::Value value) const { return independent.contains(value); }

private:
  llvm::DenseSet<mlir::Value> independent;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_FLOW_H
