//===- Floats.h - floats of 8 and 16 bits, and their arithmetic ----------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_INTERFACES_FLOATS_H
#define PARTITA_DIALECTS_INTERFACES_FLOATS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace partita {

/// Is it a float, or a tensor of floats, of 16 bits (float16 or bfloat16)? These are storage; arithmetic
/// is float32.
inline bool isShortFloat(mlir::Type type) {
  auto element = mlir::dyn_cast<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
  return element && element.getWidth() == 16;
}

/// Is it a float, or a tensor of floats, of 8 bits? Only tx.quantize and the matmuls of its results
/// compute with them.
inline bool isByteFloat(mlir::Type type) {
  auto element = mlir::dyn_cast<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
  return element && element.getWidth() == 8;
}

/// Returns the type with float32 in place of a shorter float.
inline mlir::Type inSingleAtLeast(mlir::Type type) {
  if (!isShortFloat(type))
    return type;
  mlir::Type single = mlir::Float32Type::get(type.getContext());
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  return tensor ? mlir::Type(tensor.clone(single)) : single;
}

} // namespace partita

#endif // PARTITA_DIALECTS_INTERFACES_FLOATS_H
