//===- Bias.h - what stands between the scores and the softmax, by structure --------*- C++ -*-===//
//
// A mask that depends on an input, or a bias that is no mask, is not known by value. Where
// softmax's argument is made of the scores by additions, scalings and selections of very low
// numbers, it is scale * scores + bias, and the bias can be computed without the scores: by the
// same steps, from zero. The steps keep to the shapes before broadcasts, so that a padding mask
// stays [batch, 1, 1, keys].
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_RAISE_BIAS_H
#define PARTITA_LIB_RAISE_BIAS_H

#include "dialects/Tx/Tx.h"
#include <string>

namespace partita::raise {

/// One op between scores and softmax.
struct BiasStep {
  enum Kind { Scale, Add, Subtract, HideWhere, HideUnless, AtLeast, Cast } kind;
  mlir::Value operand; // what is added, or the condition
  double number = 0;   // the scale, or the low number
  mlir::Type element;  // of a cast
};

struct BiasRecipe {
  llvm::SmallVector<BiasStep> steps; // from the scores on
  double scale = 1;
  std::string problem; // why there is no recipe; empty if all is well

  /// The values that the steps read.
  llvm::SmallVector<mlir::Value> leaves() const;
  /// Carries the steps out: `leaf` gives the tensor of four dimensions to read for a leaf. Null if
  /// nothing is added.
  mlir::Value build(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type element,
                    llvm::function_ref<mlir::Value(mlir::Value)> leaf) const;
};

/// The recipe that makes `masked` of `scores`.
BiasRecipe readBias(mlir::Value masked, mlir::Value scores);

/// `leaf`, of shape [batch, heads, queries, keys] or [batch * heads, queries, keys], as a tensor of
/// four dimensions that are one where it is a broadcast.
mlir::Value compactLeaf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value leaf,
                        int64_t batch, int64_t heads);

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_BIAS_H
