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
/// What ops that round gradients lose (LossyInterface).
inline constexpr llvm::StringLiteral kRoundedGradients = "gradients in 4 bits";
/// Returns the mesh axes over which the model's state is sharded, those with several ranks of: `fsdp`
/// if the mesh has it (hybrid sharding: each group of its ranks keeps the full state), else `dp`; and
/// `cp`, whose ranks have the same parameters too. In the order in which they cut: an axis further in in
/// the mesh, whose ranks are nearer to one another, comes first, so that what others move is its shard.
llvm::SmallVector<mlir::StringAttr> shardingAxes(par::MeshAttr mesh);
/// Returns the type of a rank's flat shard of a value that is full over these axes, of which each cuts
/// what those before it leave; null for a scalar, or if the value's split does not fit its size (an error
/// that the value's own op reports).
mlir::RankedTensorType shardType(mlir::Type full, llvm::ArrayRef<mlir::StringAttr> axes,
                                 par::MeshAttr mesh);
/// Is it what the gather of a parameter over this axis, between groups of data-parallel ranks, leaves: a shard within a
/// group still (ZeRO++'s hpZ)? Shards are over two axes that split the batch only there.
bool isSecondaryCopy(mlir::Type gathered, mlir::StringAttr axis);
/// Returns the type of the scales of a value's blocks of so many elements: a shard of it has a shard of them;
/// null if a rank, or the shard, holds no whole blocks.
mlir::RankedTensorType scalesType(mlir::Type type, int64_t block, par::MeshAttr mesh);
/// Returns the type of chunks in 4 bits of which these are the shards (QuantizeChunksOp), before or after their exchange; null if one is no
/// shard over the axis.
mlir::RankedTensorType chunksType(mlir::TypeRange shards, mlir::StringAttr axis, int64_t block,
                                  par::MeshAttr mesh, bool received);
/// Reports a block of elements in 4 bits that is not a multiple of a word's.
llvm::LogicalResult verifyWholeWords(mlir::Operation *op, uint64_t block);
/// Returns the number of padding elements of a flat shard of all ranks over its flat axes, which are
/// stored and moved for nothing.
int64_t paddingOf(mlir::Type shard, par::MeshAttr mesh);
} // namespace partita::zero

#include "dialects/Zero/ZeroDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/Zero/ZeroOps.h.inc"

#endif // PARTITA_DIALECTS_ZERO_ZERO_H
