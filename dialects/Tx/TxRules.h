//===- TxRules.h - shared by the files of rules --------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TX_TXRULES_H
#define PARTITA_DIALECTS_TX_TXRULES_H

#include "dialects/Par/Par.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::tx {

/// Returns the shape of the full tensor of which a rank has one of this type.
inline llvm::ArrayRef<int64_t> fullShape(mlir::Type type) {
  auto tensor = mlir::cast<mlir::RankedTensorType>(type);
  if (auto placement = mlir::dyn_cast_or_null<par::PlacementAttr>(tensor.getEncoding()))
    return placement.getShape();
  return tensor.getShape();
}

} // namespace partita::tx

#endif // PARTITA_DIALECTS_TX_TXRULES_H
