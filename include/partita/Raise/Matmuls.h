//===- Matmuls.h - the two matmuls around attention's softmax -----------------------*- C++ -*-===//

#ifndef PARTITA_RAISE_MATMULS_H
#define PARTITA_RAISE_MATMULS_H

#include "dialects/Tx/Tx.h"
#include "partita/Raise/Subgraph.h"

namespace partita::raise {

/// Returns true for ops that may be between the softmax and the matmuls: elementwise ops and
/// reshapes.
bool isBetween(mlir::Operation *op);

/// Returns the matmul from whose result `masked` is computed, through such ops; null if there is
/// none.
tx::BatchMatMulOp findScores(mlir::Value masked, const Independent &independent);

/// Returns the matmul whose left operand is the only use of the softmax; null if there is none.
tx::BatchMatMulOp findMatmul(tx::SoftmaxOp softmax, IsInterior isInterior);

/// Returns why a softmax between two matmuls is not attention, if it is not along the keys; else
/// "".
std::string explainAxis(tx::SoftmaxOp softmax, const Independent &independent);

/// If a matmul's left operand is computed elementwise from another matmul's result, by more than
/// sums and products, and both have computed right operands, returns the op in the place of
/// attention's softmax; else null. (With weights on the right it would be an MLP.)
mlir::Operation *findOtherWeights(tx::BatchMatMulOp matmul, const Independent &independent);

} // namespace partita::raise

#endif // PARTITA_RAISE_MATMULS_H
