//===- Stages.h - what pipeline stages must agree on --------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_VERIFY_STAGES_H
#define PARTITA_LIB_VERIFY_STAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace partita {

/// For a program of pipeline stages, each a module: do they have the program's mesh, and does every stage
/// receive what another one sends to it? `after` is the phase that has just ended, for messages.
mlir::LogicalResult checkStagesAgree(mlir::ModuleOp program, llvm::StringRef after);

} // namespace partita

#endif // PARTITA_LIB_VERIFY_STAGES_H
