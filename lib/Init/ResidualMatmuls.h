//===- ResidualMatmuls.h - matmuls that add to a residual stream --------------------*- C++ -*-===//
#ifndef PARTITA_LIB_INIT_RESIDUALMATMULS_H
#define PARTITA_LIB_INIT_RESIDUALMATMULS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::init {

/// Returns, by parameter symbol, how many matmuls in all add to the residual stream that the
/// parameter's own adds to. In GPT-2, this is twice the number of layers for the matrices that end
/// attention and MLP. In an encoder-decoder, each side has its own stream.
llvm::DenseMap<mlir::StringAttr, unsigned> countResidualMatmuls(mlir::func::FuncOp forward);

} // namespace partita::init

#endif // PARTITA_LIB_INIT_RESIDUALMATMULS_H
