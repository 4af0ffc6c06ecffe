//===- Flow.h - how values flow through region ops ----------------------------------*- C++ -*-===//
//
// Rules describe ops without regions. For ops with regions, this header says which values
// correspond, so that the passes of this folder can pass placements through.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_FLOW_H
#define PARTITA_LIB_PARTITION_FLOW_H

#include "dialects/Par/Placement.h"
#include "mlir/IR/Operation.h"

namespace partita {

/// Attributes that passes of this folder leave for one another.
inline constexpr llvm::StringLiteral kArgumentSplit = "par.split";
inline constexpr llvm::StringLiteral kResultSplits = "par.splits";
/// On a parameter that no axis may split: the user's request.
inline constexpr llvm::StringLiteral kKeepFull = "par.full";

/// On a par.narrow whose result may still turn out not to be split.
inline constexpr llvm::StringLiteral kUndecided = "par.undecided";

/// `inner` is `outer` without its first `dropped` dimensions.
struct FlowEdge {
  mlir::Value outer, inner;
  unsigned dropped;
};

/// Returns the edges into, and out of, an op with a region (train.accumulate); empty for other ops.
llvm::SmallVector<FlowEdge> entryEdges(mlir::Operation *op);
llvm::SmallVector<FlowEdge> exitEdges(mlir::Operation *op);

/// Returns true if the op follows a rule, false if placements pass through it or end at it (reads,
/// regions, terminators).
bool hasRule(mlir::Operation *op);

/// A matmul of a partial sum and a full value can leave its result partial, and then the gradient
/// of the full operand is partial, too. Returns true if the partial operand has no more bytes than
/// these two, so that completing it first is cheaper.
bool isBetterCompleted(mlir::Operation *op, const ShardRule &rule, mlir::StringAttr axis);

/// The values in an op's regions that depend only on parameters, states and constants.
class DataIndependence {
public:
  explicit DataIndependence(mlir::Operation *root);
  bool operator()(mlir::Value value) const { return independent.contains(value); }

private:
  llvm::DenseSet<mlir::Value> independent;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_FLOW_H
