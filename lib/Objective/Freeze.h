//===- Freeze.h - which parameters are trained --------------------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_OBJECTIVE_FREEZE_H
#define PARTITA_LIB_OBJECTIVE_FREEZE_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace partita::objective {

/// Freezes the parameters whose names match one of the glob patterns `freeze`, and trains those that
/// match one of `trainable`, which import may have frozen. An error: a pattern that matches none,
/// which names the nearest, and a parameter that both match.
mlir::LogicalResult chooseTrained(mlir::ModuleOp module, llvm::ArrayRef<std::string> freeze,
                                  llvm::ArrayRef<std::string> trainable);

/// An error where A and B of "A=B" are not tensors of one parameter: import ties them, while it has
/// their values.
mlir::LogicalResult checkTied(mlir::ModuleOp module, llvm::ArrayRef<std::string> pairs);

/// An error where every parameter is frozen.
mlir::LogicalResult checkSomethingTrains(mlir::ModuleOp module);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_FREEZE_H
