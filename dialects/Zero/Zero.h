//===- Zero.h - shards of parameters, gradients and states --------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_ZERO_ZERO_H
#define PARTITA_DIALECTS_ZERO_ZERO_H

#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Placement.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace partita::zero {
/// Returns the mesh axis over which the model's state is sharded: `fsdp` if the mesh has it (hybrid
/// sharding: each group of its ranks keeps the full state), else `dp`; null if neither has several
/// ranks.
mlir::StringAttr shardingAxis(par::MeshAttr mesh);
/// Returns the type of a rank's flat shard of a value that is full over `axis`; null for a scalar,
/// or if the value's split does not fit its size (an error that the value's own op reports).
mlir::RankedTensorType shardType(mlir::Type full, mlir::StringAttr axis, par::MeshAttr mesh);
/// Returns the number of padding elements of all ranks' shards, which are stored and moved for
/// nothing.
int64_t paddingOf(mlir::Type shard, mlir::StringAttr axis, par::MeshAttr mesh);
} // namespace partita::zero

#include "dialects/Zero/ZeroDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/Zero/ZeroOps.h.inc"

#endif // PARTITA_DIALECTS_ZERO_ZERO_H
