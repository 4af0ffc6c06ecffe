//===- Matmuls.h - helpers for passes that extend a matmul's kernel -----------------*- C++ -*-===//

#ifndef PARTITA_LIB_FUSE_MATMULS_H
#define PARTITA_LIB_FUSE_MATMULS_H

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"

namespace partita {

/// Returns the vector that `value` repeats along all dimensions but the last, or null.
mlir::Value repeatedRow(mlir::Value value);

/// Returns the value before reshapes.
mlir::Value unshaped(mlir::Value value);
/// Returns the users of the value, looking through reshapes, once per use.
llvm::SmallVector<mlir::Operation *> usersOf(mlir::Value value);
/// Returns true if arithmetic follows that can share a loop with the value's definition.
bool isFollowedByArithmetic(mlir::Value value);
/// Returns true if all of the values have the same element type.
bool sameElements(llvm::ArrayRef<mlir::Value> values);

/// Returns the type after reducing dimensions; an axis that splits one becomes `split`.
mlir::RankedTensorType reducedType(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> dims,
                                   par::Kind split);
/// Returns sums of the matrix's rows, possibly in another shape, in this block; null if there are
/// none.
tx::ReduceSumOp rowSumsOf(mlir::Value matrix, mlir::Block *block);
/// Returns true if the sums are added to a sum over micro-batches in more bits. The weight's
/// gradient can compute them without rounding before that.
bool isAddedWider(tx::ReduceSumOp sums);

/// Returns true if `op`, which can read the value or stands in its block, comes after its definition.
bool isBefore(mlir::Value value, mlir::Operation *op);

/// Returns true for a matmul whose rows are rows of a result: tx.matmul or tx.matmul_nt, or one of them in 8 bits.
bool isMatmul(mlir::Operation *op);
/// Returns true if all of the matmul's numbers have the same element type, but for operands in 8
/// bits, and `values` too.
bool sameElements(mlir::Operation *matmul, llvm::ArrayRef<mlir::Value> values);

/// Such a matmul and the row that is added to it.
struct BiasedMatmul {
  mlir::Operation *matmul = nullptr; ///< null if there is none
  mlir::Value row;

  /// Matches the operands of `add`, if the matmul has no other uses.
  static BiasedMatmul of(tx::AddOp add);
  /// Creates both as one op, with the addition's result type.
  mlir::Value create(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type) const;
  /// Returns true if the matmul has this result type.
  bool hasType(mlir::Type type) const { return matmul->getResult(0).getType() == type; }
};

/// Create a tx.fused_matmul, or a tx.fused_lookup, of these ops, in this order, with `results`. The
/// caller erases the ops.
tx::FusedMatmulOp fuseMatmul(mlir::OpBuilder &builder, mlir::Location loc,
                             llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results);
tx::FusedLookupOp fuseLookup(mlir::OpBuilder &builder, mlir::Location loc,
                             llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results);

/// Copies the ops of a fused matmul, or an op that is not fused, to the insertion point.
struct Unfused {
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> results;
};
Unfused unfused(mlir::OpBuilder &builder, mlir::Operation *op);

/// Erases ops without uses, from last to first.
void eraseUnused(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita

#endif // PARTITA_LIB_FUSE_MATMULS_H
