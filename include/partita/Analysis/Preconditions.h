//===- Preconditions.h - what a pass may expect of the program ----------------------*- C++ -*-===//
//
// Passes may be run one by one, on any phase's output. A pass that would produce nonsense from a later phase's program
// checks here first.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_PRECONDITIONS_H
#define PARTITA_ANALYSIS_PRECONDITIONS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace partita {

/// The program must be one from before `differentiate`: fails, with one error that names the pass, if an op updates a
/// parameter.
mlir::LogicalResult expectForward(const mlir::Pass &pass, mlir::ModuleOp module);

/// The program must also be one from before `partition-materialize`: fails too if a value is a rank's shard.
mlir::LogicalResult expectUnpartitionedForward(const mlir::Pass &pass, mlir::ModuleOp module);

/// The program must have passed phase `schedule`: fails if the backward pass is a region of its own.
mlir::LogicalResult expectScheduled(const mlir::Pass &pass, mlir::ModuleOp module);

} // namespace partita

#endif // PARTITA_ANALYSIS_PRECONDITIONS_H
