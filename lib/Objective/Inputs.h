//===- Inputs.h - what each input of a model means -------------------------------------------===//
//
// A program's inputs are described to whoever fills them (the runtime's loader, the interpreter) by
// a role each; every input that carries the batch has one row per sample.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_OBJECTIVE_INPUTS_H
#define PARTITA_LIB_OBJECTIVE_INPUTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace partita::objective {

/// Gives every argument of @forward its role: the one that `bindings` ("NAME=ROLE") name, that it
/// has, or that inputs of its name and type usually have. Reports names and roles that are unknown
/// and roles that do not fit their input.
mlir::LogicalResult assignRoles(mlir::func::FuncOp forward, llvm::ArrayRef<std::string> bindings);

/// Marks the arguments that carry the batch: those whose first dimension is as large as that of the
/// first argument that has one.
void markBatches(mlir::func::FuncOp forward);

/// The argument's role, "" without one.
llvm::StringRef roleOf(mlir::func::FuncOp function, unsigned argument);
/// "'input_ids'", or "number 2".
std::string nameOf(mlir::func::FuncOp function, unsigned argument);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_INPUTS_H
