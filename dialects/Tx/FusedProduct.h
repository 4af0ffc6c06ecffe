//===- FusedProduct.h - the parts of a tx.fused_product -----------------------------*- C++ -*-===//
//
// A matmul's kernel does few things along with it, which TxFused.td lists. What is not among them
// the op's verifier refuses, so whoever asks finds one of them.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_TX_FUSEDPRODUCT_H
#define PARTITA_DIALECTS_TX_FUSEDPRODUCT_H

#include "dialects/Tx/Tx.h"

namespace partita::tx {

/// Ops and values of the region; null where it has none such.
struct FusedProduct {
  mlir::Operation *product = nullptr;
  GeluTanhOp gelu;      ///< of the matmul, which has a bias
  GeluTanhGradOp slope; ///< times the matmul
  ReduceSumOp rowSums;  ///< of the matmul's operand that is a cotangent, or of the slope's result

  /// What the matmul and the sums of rows are in the end, widened or added to what was there.
  mlir::Value sum, rowSum;
  /// The arguments that they are added to: none, or one for each.
  mlir::Value soFar, rowsSoFar;

  static FusedProduct of(FusedProductOp op);
  /// Says what the region is instead; nothing if all is well.
  std::string read(FusedProductOp op);

  /// The op's operand that an argument of the region stands for.
  mlir::Value input(mlir::Value argument) const;
  /// The op's operand that result number `result` is added to; null if it is to none.
  mlir::Value addedTo(unsigned result) const;
  /// Is it a gradient of a weight, perhaps with its bias's?
  bool isWeightGradient() const { return mlir::isa<MatMulTNOp>(product); }
  /// Are the rows that are summed up those of the matmul's first operand?
  bool sumsFirst() { return rowSums && rowSums.getX() == product->getOperand(0); }
};

} // namespace partita::tx

#endif // PARTITA_DIALECTS_TX_FUSEDPRODUCT_H
