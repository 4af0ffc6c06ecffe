//===- Inputs.h - the role of each input of a model ------------------------------------------===//
//
// A role tells whoever fills an input (the runtime's loader, the interpreter) what it is; every
// input that carries the batch has one row per sample.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_OBJECTIVE_INPUTS_H
#define PARTITA_LIB_OBJECTIVE_INPUTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace partita::objective {

/// Gives every argument of @forward a role: the one in `bindings` ("NAME=ROLE"), the one that it
/// has, or the usual one for its name and type. Reports unknown names and roles, and roles that do
/// not fit their input.
mlir::LogicalResult assignRoles(mlir::func::FuncOp forward, llvm::ArrayRef<std::string> bindings);

/// Marks the arguments that carry the batch: those whose first dimension is as large as that of the
/// first argument that has one.
void markBatches(mlir::func::FuncOp forward);

/// Returns the number of rows of the largest table that the value, perhaps in another shape or type, indexes; 0 if there
/// is none.
int64_t rowsLookedUp(mlir::Value value);

/// Returns the argument's role, or "".
llvm::StringRef roleOf(mlir::func::FuncOp function, unsigned argument);
/// Returns "'input_ids'", or "number 2".
std::string nameOf(mlir::func::FuncOp function, unsigned argument);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_INPUTS_H
