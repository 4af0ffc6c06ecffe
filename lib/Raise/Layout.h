//===- Layout.h - which dimension of a value is which, through reshapes ------------*- C++ -*-===//
//
// An *atom* is a dimension of a composite's input, larger than one. Every dimension of every value
// in between is a row-major product of atoms: transposes permute them, reshapes regroup them. So a
// value's layout can be read off, and the same subgraph can be built again over smaller atoms.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_RAISE_LAYOUT_H
#define PARTITA_LIB_RAISE_LAYOUT_H

#include "dialects/Tx/Tx.h"
#include <optional>

namespace partita::raise {

/// Per dimension, its atoms, outermost first; none for a dimension of size one.
using Labels = llvm::SmallVector<llvm::SmallVector<unsigned, 2>, 4>;

/// The labels after a reshape to `shape`; none if an atom would have to be cut.
std::optional<Labels> regroup(const Labels &labels, llvm::ArrayRef<int64_t> shape,
                              llvm::ArrayRef<int64_t> atomSizes);

/// Sizes of dimensions with these labels.
llvm::SmallVector<int64_t> shapeOf(const Labels &labels, llvm::ArrayRef<int64_t> atomSizes);

/// `value`, seen as `source` with its dimensions permuted, repeated, regrouped and its elements
/// scaled.
struct View {
  mlir::Value source;
  Labels labels; // of `value`; atom i is dimension i of `source`, later ones are repetitions
  llvm::SmallVector<int64_t> atomSizes;
  double scale = 1;
};

/// The views of `value` from as far back as transposes, broadcasts, reshapes that cut no dimension
/// and (with `throughScale`) products with a constant reach, the nearest first.
llvm::SmallVector<View> traceViews(mlir::Value value, bool throughScale);

/// `value` transposed; none for the identity.
mlir::Value createTranspose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                            llvm::ArrayRef<int64_t> permutation);
mlir::Value createReshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          llvm::ArrayRef<int64_t> shape);

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_LAYOUT_H
