//===- TokenScores.h - finds outputs with one score per token ------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_OBJECTIVE_TOKENSCORES_H
#define PARTITA_LIB_OBJECTIVE_TOKENSCORES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::objective {

/// Returns the results [batch, sequence] of @forward whose second dimension is that of the tokens,
/// by the rules of the ops in between rather than by size: a model may have as many classes as
/// tokens.
llvm::SmallVector<unsigned> findTokenScores(mlir::func::FuncOp forward, unsigned tokens);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_TOKENSCORES_H
