//===- ResidualProducts.h - matrices whose products are added to a residual stream --*- C++ -*-===//
#ifndef PARTITA_LIB_INIT_RESIDUALPRODUCTS_H
#define PARTITA_LIB_INIT_RESIDUALPRODUCTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::objective {

/// Per parameter, by its symbol: how many products in all are added to the residual stream that its
/// own is added to. Of GPT-2 twice the number of layers, for the matrices that end attention and
/// MLP; of an encoder-decoder each side has its own stream.
llvm::DenseMap<mlir::StringAttr, unsigned> countResidualProducts(mlir::func::FuncOp forward);

} // namespace partita::objective

#endif // PARTITA_LIB_INIT_RESIDUALPRODUCTS_H
