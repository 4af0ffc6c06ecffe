//===- CausalAttention.h - finds out whether attention hides later tokens -----------*- C++ -*-===//
#ifndef PARTITA_LIB_OBJECTIVE_CAUSALATTENTION_H
#define PARTITA_LIB_OBJECTIVE_CAUSALATTENTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::objective {

/// Returns all attention ops, if each of them shows the first query the key after its own. Empty if
/// there is no attention, or if one of them hides that key or may do so depending on data.
llvm::SmallVector<mlir::Operation *> findOpenAttentions(mlir::func::FuncOp function);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_CAUSALATTENTION_H
