//===- Functions.h - attributes of entry points -----------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_VERIFY_FUNCTIONS_H
#define PARTITA_LIB_VERIFY_FUNCTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace partita {

/// Checks that no two functions of a module are the same entry point: a run calls one.
mlir::LogicalResult checkEntryPoints(mlir::ModuleOp module);

/// Checks that the inputs of the batch have train.batch, by which ranks are given their samples.
/// `after` is the phase that the error names.
mlir::LogicalResult checkBatches(mlir::ModuleOp module, llvm::StringRef after);

/// Checks that each function is an entry point or is called by one, in a module that has any.
mlir::LogicalResult checkCalled(mlir::ModuleOp module, llvm::StringRef after);

} // namespace partita

#endif // PARTITA_LIB_VERIFY_FUNCTIONS_H
