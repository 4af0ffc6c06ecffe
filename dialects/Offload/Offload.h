//===- Offload.h - copies between device and host memory ----------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_OFFLOAD_OFFLOAD_H
#define PARTITA_DIALECTS_OFFLOAD_OFFLOAD_H

#include "dialects/Interfaces/Interfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace partita::offload {
/// Returns true if the parameter or state is offloaded.
bool livesOnHost(mlir::Operation *symbol);
/// Returns true if the host makes this update.
bool isMadeOnHost(mlir::Operation *update);
/// Returns true if the value is in host memory: read from an offloaded symbol, copied there, or the
/// new value of one that is there.
bool isOnHost(mlir::Value value);
} // namespace partita::offload

#include "dialects/Offload/OffloadDialect.h.inc"
#include "dialects/Offload/OffloadEnums.h.inc"
#include "dialects/Offload/OffloadInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Offload/OffloadAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Offload/OffloadOps.h.inc"

namespace partita::offload {
/// Returns the direction of a copy, or of the start of one; none for other ops or null.
std::optional<Direction> directionOf(mlir::Operation *op);
} // namespace partita::offload

#endif // PARTITA_DIALECTS_OFFLOAD_OFFLOAD_H
