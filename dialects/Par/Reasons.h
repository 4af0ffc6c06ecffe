//===- Reasons.h - explains how a value got its placement ---------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PAR_REASONS_H
#define PARTITA_DIALECTS_PAR_REASONS_H

#include "dialects/Par/Placement.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::par {

/// Why a type with a placement is not that of one rank's shard on the mesh; empty if it is.
std::string shardProblem(mlir::RankedTensorType type, MeshAttr mesh);

/// One step of the way back from a value to the op that placed it over an axis.
struct ReasonStep {
  mlir::Value value;
  mlir::Operation *op = nullptr; ///< null for a function's argument
  Kind kind = Kind::Invariant;
  int dim = -1;       ///< the dimension that the axis splits
  int operand = -1;   ///< which operand of the previous step the value is
  int letter = -1;    ///< the letter of the op's rule that the axis splits; -1 if it splits none
  std::string how;    ///< in words
  mlir::Location loc; ///< where
};

/// Traces back from `value`, op by op, by the rules and `axis`: a shard comes from an operand with
/// the same letter, a partial sum from the op whose letter is summed away and then from the operand
/// that splits that letter, a replicated value from a replicated operand. Ends at a conjugate or
/// collective over the axis, at a parameter, at an argument, or where every rank computes the same.
/// Safe on programs that do not verify.
llvm::SmallVector<ReasonStep> traceReasons(mlir::Value value, mlir::StringAttr axis);
/// Traces a result whose type is wrong: it should be placed as `kind`.
llvm::SmallVector<ReasonStep> traceReasons(mlir::OpResult result, Kind kind, mlir::StringAttr axis);

/// Attaches the steps to an error, one note each; if there are many, only the first and the last
/// ones. `subject` is the error's name for the value: "operand 1".
void attachReasons(mlir::InFlightDiagnostic &error, llvm::StringRef subject, mlir::StringAttr axis,
                   llvm::ArrayRef<ReasonStep> steps);

/// Attaches reasons to the error of an op that a rule rejects: for the placements of the operand at
/// fault and of the one that it contradicts.
void attachReasons(mlir::InFlightDiagnostic &error, mlir::Operation *op,
                   const RuleProblem &problem);

} // namespace partita::par

#endif // PARTITA_DIALECTS_PAR_REASONS_H
