//===- Idle.h - options of the plan that do nothing -------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PIPE_IDLE_H
#define PARTITA_DIALECTS_PIPE_IDLE_H

#include "mlir/IR/BuiltinOps.h"

namespace partita::pipe {

/// On a stage: which options of the plan a pass found without effect there, and why, by name. Another
/// stage may have what they apply to, so they are an error once no stage has it (checkIdle).
inline constexpr llvm::StringLiteral kIdle = "pipe.idle";

/// Reports that a plan's option has no effect on a program, because of `reason`; records it on a
/// stage, and succeeds.
mlir::LogicalResult reportIdle(mlir::ModuleOp module, llvm::StringRef option,
                               llvm::StringRef reason);

/// Reports an option that all stages of the program record.
mlir::LogicalResult checkIdle(mlir::ModuleOp program);

mlir::LogicalResult verifyIdle(mlir::Operation *op, mlir::Attribute idle);

} // namespace partita::pipe

#endif // PARTITA_DIALECTS_PIPE_IDLE_H
