//===- Offload.h - between the device's memory and the host's -----------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_OFFLOAD_H
#define PARTITA_DIALECTS_OFFLOAD_H

#include "dialects/Interfaces/Interfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace partita::offload {
/// Does the parameter or state live in the host's memory?
bool livesOnHost(mlir::Operation *symbol);
/// Does the host make this update?
bool isMadeOnHost(mlir::Operation *update);
/// Does the value stand in the host's memory? It does where it is read from a symbol that lives
/// there, was copied there, or is the new value of one that stands there.
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
/// Where the copy, or the start of one, leads; none of another op, or of null.
std::optional<Direction> directionOf(mlir::Operation *op);
} // namespace partita::offload

#endif // PARTITA_DIALECTS_OFFLOAD_H
