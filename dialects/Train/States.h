//===- States.h - states that are no parameter's ------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TRAIN_STATES_H
#define PARTITA_DIALECTS_TRAIN_STATES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::train {

/// Creates a state of the module, which @init, if there is one, writes last.
void makeState(mlir::ModuleOp module, llvm::StringRef name, mlir::RankedTensorType type,
               double value);
/// Checks that no parameter has the name of a state; these are fixed, here and in checkpoints.
/// `what` has the states, and `without` is how to train with none.
mlir::LogicalResult checkStateNames(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> names,
                                    llvm::StringRef what, llvm::StringRef without);

} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_STATES_H
