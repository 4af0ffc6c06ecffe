//===- Freeze.h - chooses which parameters are trained ------------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_OBJECTIVE_FREEZE_H
#define PARTITA_LIB_OBJECTIVE_FREEZE_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace partita::objective {

/// Freezes the parameters whose names match one of the glob patterns `freeze`, and trains those
/// that match one of `trainable`, which import may have frozen. Reports a pattern that matches
/// nothing, with the nearest name, and a parameter that both match.
mlir::LogicalResult chooseTrained(mlir::ModuleOp module, llvm::ArrayRef<std::string> freeze,
                                  llvm::ArrayRef<std::string> trainable);

/// Reports each pair "A=B" whose A and B are not tensors of one parameter. (Import ties them, while
/// it has their values.)
mlir::LogicalResult checkTied(mlir::ModuleOp module, llvm::ArrayRef<std::string> pairs);

/// Reports an error if every parameter is frozen.
mlir::LogicalResult checkSomethingTrains(mlir::ModuleOp module);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_FREEZE_H
