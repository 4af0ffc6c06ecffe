//===- Products.h - what passes that extend a matmul's kernel share -----------------*- C++ -*-===//

#ifndef PARTITA_LIB_FUSE_PRODUCTS_H
#define PARTITA_LIB_FUSE_PRODUCTS_H

#include "dialects/Tx/Tx.h"

namespace partita {

/// The vector that `value` repeats along all dimensions but the last, or null.
mlir::Value repeatedRow(mlir::Value value);

/// What the value is a reshape of.
mlir::Value unshaped(mlir::Value value);
/// Who uses the value, also in another shape; an op as often as it does.
llvm::SmallVector<mlir::Operation *> usersOf(mlir::Value value);
/// Does arithmetic follow, which can be done in one loop with what makes the value?
bool isFollowedByArithmetic(mlir::Value value);
/// Are all these values of one type of elements?
bool sameElements(llvm::ArrayRef<mlir::Value> values);

/// Sums of all rows of the matrix, perhaps in another shape, in this block; null if nobody has any.
tx::ReduceSumOp rowSumsOf(mlir::Value matrix, mlir::Block *block);
/// Are they added to a sum over micro-batches in more bits? The weight's gradient, with which they
/// can be made too, rounds nothing before that.
bool isAddedWider(tx::ReduceSumOp sums);

/// Is it a matmul whose rows are rows of a result: tx.matmul or tx.matmul_nt?
bool isProduct(mlir::Operation *op);

/// Such a matmul and the row that is added to it.
struct BiasedProduct {
  mlir::Operation *product = nullptr; ///< null where there is none
  mlir::Value row;

  /// What `add` adds up, if nobody else uses the product.
  static BiasedProduct of(tx::AddOp add);
  /// Both as one op, with a result of the addition's type.
  mlir::Value create(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type) const;
  /// Is the matmul of the addition's type?
  bool hasType(mlir::Type type) const { return product->getResult(0).getType() == type; }
};

/// A tx.fused_product of these ops, in this order, whose results are `results`; the ops are left
/// for the caller to erase.
tx::FusedProductOp fuseProduct(mlir::OpBuilder &builder, mlir::Location loc,
                               llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results);

/// Copies of the ops of a fused matmul, or of the op itself if it is none, where the builder
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
