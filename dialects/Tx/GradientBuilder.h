//===- GradientBuilder.h - helpers for the gradients of the op table ----------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TX_GRADIENTBUILDER_H
#define PARTITA_DIALECTS_TX_GRADIENTBUILDER_H

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"

namespace partita::tx {

/// Builds the ops of one vector-Jacobian product at the location of the differentiated op.
class GradientBuilder {
public:
  GradientBuilder(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange cotangents)
      : builder(builder), loc(op->getLoc()), cotangents(cotangents) {}

  /// Returns the cotangent of the first result.
  mlir::Value dy() const { return cotangents[0]; }

  template <typename Op, typename... Values> mlir::Value op(Values... values) {
    return Op::create(builder, loc, mlir::ValueRange{values...})->getResult(0);
  }
  /// Creates a constant with the shape and placement of `type`, in 32 bits or more. Only zero may
  /// be partial: zeros add up to zero, but other numbers are not partial sums of themselves.
  mlir::Value splat(mlir::Type type, double value);
  /// Sums `value` over the dimensions that broadcasting `type` to its shape repeated. Returns the
  /// cotangent of `type`.
  mlir::Value sumTo(mlir::Value value, mlir::Type type);
  /// Broadcasts `value` along `dims` of `type`, which it lacks.
  mlir::Value spread(mlir::Value value, mlir::Type type, llvm::ArrayRef<int64_t> dims);
  /// Returns true if `power` is x, x x, (x x) x, ...
  static bool isPower(mlir::Value power, mlir::Value x);
  /// Transposes the last two dimensions.
  mlir::Value swapLast(mlir::Value value);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::ValueRange cotangents;
};

} // namespace partita::tx

#endif // PARTITA_DIALECTS_TX_GRADIENTBUILDER_H
