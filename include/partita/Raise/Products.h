//===- Products.h - the two products around attention's softmax ---------------------*- C++ -*-===//

#ifndef PARTITA_RAISE_PRODUCTS_H
#define PARTITA_RAISE_PRODUCTS_H

#include "dialects/Tx/Tx.h"
#include "partita/Raise/Subgraph.h"

namespace partita::raise {

/// What may stand between the softmax and the products: elementwise ops and reshapes.
bool isBetween(mlir::Operation *op);

/// The product whose result `masked` is computed from, through such ops; null if there is none.
tx::BatchMatMulOp findScores(mlir::Value masked, const Independent &independent);

/// The product whose left operand all that is made of the softmax ends in; null if there is none.
tx::BatchMatMulOp findProduct(tx::SoftmaxOp softmax, IsInterior isInterior);

/// Of a softmax between two products that is not along the keys: why it is no attention; or empty.
std::string explainAxis(tx::SoftmaxOp softmax, const Independent &independent);

/// Of a product whose left operand is made of another's result elementwise, by more than sums and
/// products, where both have what is computed on their right: the op that stands where attention
/// has its softmax; or null. (Weights on the right make an MLP of it.)
mlir::Operation *findOtherWeights(tx::BatchMatMulOp product, const Independent &independent);

} // namespace partita::raise

#endif // PARTITA_RAISE_PRODUCTS_H
