//===- CausalAttention.h - does a model's attention hide later tokens? --------------*- C++ -*-===//
#ifndef PARTITA_LIB_OBJECTIVE_CAUSALATTENTION_H
#define PARTITA_LIB_OBJECTIVE_CAUSALATTENTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::objective {

/// Attentions of which each shows the first query the key after its own. Empty where there is none,
/// or where one hides it, or may do so by what only the data says.
llvm::SmallVector<mlir::Operation *> findOpenAttentions(mlir::func::FuncOp function);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_CAUSALATTENTION_H
