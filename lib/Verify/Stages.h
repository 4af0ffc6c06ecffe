//===- Stages.h - what pipeline stages must agree on --------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_VERIFY_STAGES_H
#define PARTITA_LIB_VERIFY_STAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace partita {

/// Checks the stages of a pipeline, each a module: they have the program's mesh and cuts, every
/// stage receives the values that others send to it, and every option of the plan has an effect on
/// some stage. `after` is the phase that has just ended, for messages.
mlir::LogicalResult checkStagesAgree(mlir::ModuleOp program, llvm::StringRef after);

/// Checks what the module of a pipeline says of its stages: its cuts have the layers whose work is
/// recorded, and until it is cut, ops are where the cuts have their layers, and its schedule has the
/// orders that its name stands for.
mlir::LogicalResult checkPlacement(mlir::ModuleOp program, llvm::StringRef after);

} // namespace partita

#endif // PARTITA_LIB_VERIFY_STAGES_H
