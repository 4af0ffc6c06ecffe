//===- Zero.h - pieces of parameters, gradients and states --------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_ZERO_H
#define PARTITA_DIALECTS_ZERO_H

#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Placement.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace partita::zero {
/// The mesh axis whose ranks share the model's state: `fsdp` where the mesh has it (each group of
/// its ranks keeps all of it, hybrid sharding), else `dp`; null where neither has several ranks.
mlir::StringAttr shardingAxis(par::MeshAttr mesh);
/// The type of a rank's flat piece of a value that is whole over `axis`; null where the value is
/// split in a way that its size does not allow (an error that the value's own op reports).
mlir::RankedTensorType pieceType(mlir::Type whole, mlir::StringAttr axis, par::MeshAttr mesh);
/// Elements of all ranks' pieces beyond the whole: what is stored and moved for nothing.
int64_t paddingOf(mlir::Type piece, mlir::StringAttr axis, par::MeshAttr mesh);
} // namespace partita::zero

#include "dialects/Zero/ZeroDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/Zero/ZeroOps.h.inc"

#endif // PARTITA_DIALECTS_ZERO_H
