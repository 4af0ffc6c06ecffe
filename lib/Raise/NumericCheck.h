//===- NumericCheck.h - is a candidate equal to what would replace it? --------------*- C++ -*-===//
//
// A scratch module with two functions of the same inputs, the candidate's ops and the replacement,
// over dimensions shrunk to a few elements each; the interpreter runs both in double precision.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_RAISE_NUMERICCHECK_H
#define PARTITA_LIB_RAISE_NUMERICCHECK_H

#include "lib/Raise/Layout.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "partita/Raise/Subgraph.h"

namespace partita::raise {

/// An input of both functions.
struct ScratchInput {
  mlir::Value leaf;
  Labels labels;
  double mean = 0, deviation = 1; // of its random elements
};

/// A constant of the candidate to replace by another, to learn whether it is to blame.
struct Substitution {
  mlir::OpOperand *operand = nullptr;
  double value = 0;
};

class NumericCheck {
public:
  /// Atom i has `oldSizes[i]` elements in the model and `newSizes[i]` here.
  NumericCheck(const Subgraph &subgraph, llvm::ArrayRef<int64_t> oldSizes,
               llvm::ArrayRef<int64_t> newSizes)
      : subgraph(subgraph), oldSizes(oldSizes), newSizes(newSizes) {}

  llvm::SmallVector<ScratchInput> inputs;
  /// Yields elements of operands that depend on nothing and are no splat; the candidate gets the
  /// corner of such an operand that the shrunk dimensions have room for.
  std::function<std::optional<double>(mlir::Value, llvm::ArrayRef<int64_t>)> element;
  Substitution substitution;
  /// An op of the candidate to replace by the square of its first operand, to learn whether it is
  /// to blame.
  mlir::Operation *squared = nullptr;
  /// The atom of dimensions that a broadcast makes of one element, where it is as large as they
  /// are.
  std::optional<unsigned> repeatAtom;

  /// After an error that is none: the op of the candidate that its shrunk operands do not fit, or
  /// null.
  mlir::Operation *stuckAt = nullptr;

  /// Builds the replacement from the scratch function's arguments, in the order of `inputs`.
  using BuildReplacement = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>;

  /// max|candidate - replacement| / max|replacement|; none if the candidate cannot be built over
  /// shrunk dimensions or gives no numbers.
  std::optional<double> error(BuildReplacement build);

private:
  mlir::Value clone(mlir::OpBuilder &builder, mlir::ValueRange arguments);
  mlir::Operation *cloneOp(mlir::OpBuilder &builder, mlir::Operation *op);
  std::optional<Labels> labelsOf(mlir::Operation *op);
  mlir::Value fixedOperand(mlir::OpBuilder &builder, mlir::OpOperand &operand, const Labels &like);

  const Subgraph &subgraph;
  llvm::SmallVector<int64_t> oldSizes, newSizes;
  llvm::DenseMap<mlir::Value, mlir::Value> mapped;
  llvm::DenseMap<mlir::Value, Labels> labels;
};

/// Accepted differences, of the largest value: what rounding to the element type does, to at least
/// 24 bits' two last places (wider models have constants of float32).
double tolerance(mlir::Type elementType);

/// Six significant digits.
std::string numberText(double value);

/// The splat operands of a candidate, each tried with those of `canonical` that are within a fifth:
/// the one whose replacement makes the candidate right, in words ("operand 1 of tx.pow is 2.0001,
/// it would be with 2"); empty if there is none.
std::string blameConstant(const Subgraph &subgraph, llvm::ArrayRef<double> canonical,
                          llvm::function_ref<std::optional<double>(Substitution)> error,
                          double tolerance);

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_NUMERICCHECK_H
