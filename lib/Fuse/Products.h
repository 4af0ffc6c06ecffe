//===- Products.h - what passes that extend a product's kernel share ----------------*- C++ -*-===//

#ifndef PARTITA_LIB_FUSE_PRODUCTS_H
#define PARTITA_LIB_FUSE_PRODUCTS_H

#include "dialects/Tx/Tx.h"

namespace partita {

/// The vector that `value` repeats along all dimensions but the last, or null.
mlir::Value repeatedRow(mlir::Value value);

/// A tx.fused_product of these ops, in this order, whose results are `results`; the ops are left
/// for the caller to erase.
tx::FusedProductOp fuseProduct(mlir::OpBuilder &builder, mlir::Location loc,
                               llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results);

/// Copies of the ops of a fused product, or of the op itself if it is none, where the builder
/// stands, and what they result in there.
struct Unfused {
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> results;
};
Unfused unfused(mlir::OpBuilder &builder, mlir::Operation *op);

/// Erases ops that nobody uses any more, the last ones first.
void eraseUnused(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita

#endif // PARTITA_LIB_FUSE_PRODUCTS_H
