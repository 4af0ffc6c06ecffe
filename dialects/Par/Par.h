//===- Par.h - meshes, placements, conjugates, collectives --------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PAR_H
#define PARTITA_DIALECTS_PAR_H

#include "dialects/Interfaces/Interfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace partita::par {
/// The size of an axis of the op's mesh.
int64_t ranksOver(mlir::Operation *op, mlir::StringAttr axis);

/// What the ranks of an axis hold of a value (the table of #par.place).
enum class Kind { Invariant, Replicated, Sharded, Partial, Max, Flat };
llvm::StringRef toString(Kind kind);

/// A dimension that an axis splits, in memory: `blocks` blocks, each of which has `count` contiguous
/// elements per rank, in rank order.
struct Interleaving {
  int64_t blocks = 1, count = 1;
};
/// Of a rank's shard, whose dimension `dim` the axis splits within each of `blocks` blocks.
Interleaving interleaving(mlir::Operation *op, mlir::RankedTensorType piece, mlir::StringAttr axis,
                          int64_t dim, int64_t blocks);
} // namespace partita::par

#include "dialects/Par/ParDialect.h.inc"
#include "dialects/Par/ParEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Par/ParAttrs.h.inc"
#include "dialects/Par/ParInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/Par/ParOps.h.inc"

namespace partita::par {
/// A mesh axis over which this compiler can split something. (pp, which splits the program, is pipe's.)
struct AxisRow {
  llvm::StringLiteral name;
  llvm::StringLiteral what; ///< in words
  bool splitsBatch = false; ///< the samples of a batch are split over it
};
/// All axes, by the distance over which ranks communicate: ZeRO shards over the last one that splits the batch.
inline constexpr AxisRow kAxes[] = {
    {"dp", "data parallel", /*splitsBatch=*/true},
    {"fsdp", "the same, with the model's state shared by --zero-stage", /*splitsBatch=*/true},
    {"tp", "tensor parallel"},
};
/// The axis's row; null if there is no such axis.
const AxisRow *findAxis(llvm::StringRef name);
/// "dp, fsdp, tp"
std::string axisNames();
/// Are samples split over this axis?
inline bool splitsBatch(llvm::StringRef axis) {
  const AxisRow *row = findAxis(axis);
  return row && row->splitsBatch;
}

/// Reports an error and fails if the op's module has a mesh without the axis.
llvm::LogicalResult verifyAxis(mlir::Operation *op, mlir::StringAttr axis);

/// The causes of an op, each once, in order: one, or those of all ops that were joined in it.
llvm::SmallVector<CauseAttr> causesOf(mlir::Operation *op);
/// The causes in a location within a pass (dialects/Interfaces/Provenance.h).
llvm::SmallVector<CauseAttr> causesOf(mlir::Location loc);
/// The location with a cause; those that it had before are replaced.
mlir::Location withCause(mlir::Location loc, CauseAttr cause);
/// `where` with the first cause of `from` in another role; unchanged if `from` has none.
mlir::Location withRole(mlir::Location where, mlir::Location from, Role role);
/// Is an op of this role there for the gradients of parameters, which are reduced once per step, when there is time?
bool isOfParameters(Role role);
} // namespace partita::par

#endif // PARTITA_DIALECTS_PAR_H
