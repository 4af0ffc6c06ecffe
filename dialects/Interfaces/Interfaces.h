//===- Interfaces.h - what every pass may ask an op ---------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_INTERFACES_H
#define PARTITA_DIALECTS_INTERFACES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace partita {
/// What of an op is stored in 16 bits: PrecisionInterface.
enum class Precision { Low, Follow, High, Exact };

/// Checks the placements in the op's types against its rule (Par/PlacementRule.cpp); reports why.
mlir::LogicalResult verifyShardRule(mlir::Operation *op);

/// Bytes of what a rank holds of tensors of these types.
int64_t bytesOf(mlir::TypeRange tensors);
} // namespace partita

#include "dialects/Interfaces/Interfaces.h.inc"

#endif // PARTITA_DIALECTS_INTERFACES_H
