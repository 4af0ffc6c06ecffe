//===- Products.h - the two products around attention's softmax ---------------------*- C++ -*-===//

#ifndef PARTITA_RAISE_PRODUCTS_H
#define PARTITA_RAISE_PRODUCTS_H

#include "dialects/Tx/Tx.h"
#include "partita/Raise/Subgraph.h"

namespace partita::raise {

/// The ops that may be between the softmax and the matmuls: elementwise ops and reshapes.
bool isBetween(mlir::Operation *op);

/// The matmul from whose result `masked` is computed, through such ops; null if there is none.
tx::BatchMatMulOp findScores(mlir::Value masked, const Independent &independent);

/// The matmul whose left operand is all that the softmax is used for; null if there is none.
tx::BatchMatMulOp findProduct(tx::SoftmaxOp softmax, IsInterior isInterior);

/// Why a softmax between two matmuls is not attention, if it is not along the keys; else empty.
std::string explainAxis(tx::SoftmaxOp softmax, const Independent &independent);

/// If a matmul's left operand is computed elementwise from another matmul's result, by more than sums
/// and products, and both have computed right operands: the op in the place of attention's softmax;
/// else null. (With weights on the right it would be an MLP.)
mlir::Operation *findOtherWeights(tx::BatchMatMulOp product, const Independent &independent);

} // namespace partita::raise

#endif // PARTITA_RAISE_PRODUCTS_H
