//===- Freeze.h - parameters that are not trained -----------------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_OBJECTIVE_FREEZE_H
#define PARTITA_LIB_OBJECTIVE_FREEZE_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace partita::objective {

/// Freezes the parameters whose names match one of the glob patterns; a pattern that matches none
/// is an error that names the nearest.
mlir::LogicalResult freezeParameters(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns);

/// An error where every parameter is frozen.
mlir::LogicalResult checkSomethingTrains(mlir::ModuleOp module);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_FREEZE_H
