//===- Preconditions.h - what a pass may expect of its input ------------------------*- C++ -*-===//
//
// Passes may be run one by one, on any phase's output. A pass that would produce nonsense for a
// program from a later phase checks here first.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_PRECONDITIONS_H
#define PARTITA_ANALYSIS_PRECONDITIONS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace partita {

/// Expects a program from before `differentiate`. Fails, after one error that names the pass, if an
/// op updates a parameter.
mlir::LogicalResult expectForward(const mlir::Pass &pass, mlir::ModuleOp module);

/// Expects a program from before `partition-materialize`, too. Also fails if a value is a rank's
/// shard.
mlir::LogicalResult expectUnpartitionedForward(const mlir::Pass &pass, mlir::ModuleOp module);

/// Expects a program that has passed phase `schedule`. Fails if the backward pass is a region of
/// its own.
mlir::LogicalResult expectScheduled(const mlir::Pass &pass, mlir::ModuleOp module);

} // namespace partita

#endif // PARTITA_ANALYSIS_PRECONDITIONS_H
