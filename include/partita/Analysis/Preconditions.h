//===- Preconditions.h - what a pass may expect of the program ----------------------*- C++ -*-===//
//
// Passes may be run one by one, on whatever phase's output. One that would make nonsense of a later phase's program asks
// here first.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_PRECONDITIONS_H
#define PARTITA_ANALYSIS_PRECONDITIONS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace partita {

/// The program as the phases before `differentiate` have it: fails, with one error that names the pass, where an op
/// updates a parameter.
mlir::LogicalResult expectForward(const mlir::Pass &pass, mlir::ModuleOp module);

/// Such a program before `partition-materialize`: fails too where a value is a rank's shard.
mlir::LogicalResult expectUnpartitionedForward(const mlir::Pass &pass, mlir::ModuleOp module);

/// The program as phase `schedule` leaves it: fails where the backward pass is a region of its own.
mlir::LogicalResult expectScheduled(const mlir::Pass &pass, mlir::ModuleOp module);

} // namespace partita

#endif // PARTITA_ANALYSIS_PRECONDITIONS_H
