//===- FusedMatmul.h - the ops of a tx.fused_matmul ---------------------------------*- C++ -*-===//
//
// TxFused.td lists the epilogues that a matmul's kernel has. The op's verifier rejects all others,
// so a reader always finds one of them.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_TX_FUSEDMATMUL_H
#define PARTITA_DIALECTS_TX_FUSEDMATMUL_H

#include "dialects/Tx/Tx.h"

namespace partita::tx {

/// Returns true for a matmul whose operands are stored in 8 bits.
inline bool isScaled(mlir::Operation *matmul) {
  return mlir::isa<ScaledMatMulOp, ScaledMatMulNTOp, ScaledMatMulTNOp, ScaledMatMulColumnsOp,
                   ScaledMatMulBiasOp, ScaledMatMulNTBiasOp>(matmul);
}
/// Returns true for a matmul that sums over rows.
inline bool isWeightGradient(mlir::Operation *matmul) {
  return mlir::isa<MatMulTNOp, ScaledMatMulTNOp, ScaledMatMulColumnsOp>(matmul);
}

/// Ops and values of the region; null if it has none.
struct FusedMatmul {
  mlir::Operation *matmul = nullptr;
  GeluTanhOp gelu;      ///< of the matmul, which has a bias
  GeluTanhGradOp slope; ///< times the matmul
  ReduceSumOp rowSums;  ///< of the matmul's operand that is a cotangent, or of the slope's result

  /// The final values of the matmul and of the row sums, perhaps widened or added to a running sum.
  mlir::Value sum, rowSum;
  /// The arguments that they are added to, or null.
  mlir::Value soFar, rowsSoFar;

  static FusedMatmul of(FusedMatmulOp op);
  /// Reads the region. Returns what is wrong with it, or "".
  std::string read(FusedMatmulOp op);

  /// Returns the op's operand for an argument of the region.
  mlir::Value input(mlir::Value argument) const;
  /// Returns the op's operand to which result number `result` is added, or null.
  mlir::Value addedTo(unsigned result) const;
  /// Returns true for a gradient of a weight, perhaps with its bias's.
  bool isWeightGradient() const { return partita::tx::isWeightGradient(matmul); }
  /// Returns the argument that the matmul adds to every row, or null.
  mlir::Value bias() const;
  /// Returns true if the summed rows are those of the matmul's first operand.
  bool sumsFirst() { return rowSums && rowSums.getX() == matmul->getOperand(0); }
};

} // namespace partita::tx

#endif // PARTITA_DIALECTS_TX_FUSEDMATMUL_H
