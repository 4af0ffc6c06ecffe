//===- Par.h - meshes, placements, conjugates, collectives --------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PAR_PAR_H
#define PARTITA_DIALECTS_PAR_PAR_H

#include "dialects/Interfaces/Interfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <string_view>

namespace partita::par {
/// The size of an axis of the op's mesh.
int64_t ranksOver(mlir::Operation *op, mlir::StringAttr axis);

/// What the ranks of an axis hold of a value (the table of #par.place).
enum class Kind { Invariant, Replicated, Sharded, Partial, Max, Flat };
llvm::StringRef toString(Kind kind);

/// The blocks of a dimension, in order: a number of equal ones, or blocks of these sizes.
struct Blocks {
  int64_t count = 1;
  llvm::SmallVector<int64_t, 0> sizes; ///< unless they are equal
  /// Odd blocks, counted from 0, are dealt backwards: the last rank has their first shard.
  bool mirrored = false;

  static constexpr size_t kMostUnequal = 8; // the capacity of the runtime's tables

  Blocks(int64_t count = 1) : count(count) {} // a number of equal blocks
  static Blocks of(llvm::ArrayRef<int64_t> sizes);
  /// Returns `count` equal blocks; an even number if they are mirrored.
  static Blocks equal(int64_t count, bool mirrored);
  /// Returns the sizes of the blocks of a dimension of `size`.
  llvm::SmallVector<int64_t> sizesIn(int64_t size) const;
  /// Returns the place of a rank's shard in a block, counted in shards. Also the other way round.
  int64_t placeIn(int64_t block, int64_t rank, int64_t ranks) const {
    return mirrored && block % 2 != 0 ? ranks - 1 - rank : rank;
  }
  bool operator==(const Blocks &other) const {
    return count == other.count && sizes == other.sizes && mirrored == other.mirrored;
  }
  bool operator!=(const Blocks &other) const { return !(*this == other); }
};

/// The memory layout of a dimension that an axis splits: `blocks` blocks, each of which has `count`
/// contiguous elements per rank, in rank order.
struct Interleaving {
  int64_t blocks = 1, count = 1;
};
/// Returns the layout of a rank's shard, whose dimension `dim` the axis splits within each of
/// `blocks` blocks.
Interleaving interleaving(mlir::Operation *op, mlir::RankedTensorType shard, mlir::StringAttr axis,
                          int64_t dim, int64_t blocks);
} // namespace partita::par

#include "dialects/Par/ParDialect.h.inc"
#include "dialects/Par/ParEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Par/ParAttrs.h.inc"

namespace partita {
/// Of ops: `until 10`, `until 20 doubling 4`.
mlir::ParseResult parseExactSteps(mlir::OpAsmParser &parser, par::ExactStepsAttr &steps);
void printExactSteps(mlir::OpAsmPrinter &printer, mlir::Operation *op, par::ExactStepsAttr steps);
} // namespace partita
#include "dialects/Par/ParInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/Par/ParOps.h.inc"

namespace partita::par {
/// What the ranks along a mesh axis share out.
enum class Splits {
  Program, ///< its ops, each rank to one stage: no tensor and no #par.mesh has the axis
  Batch,   ///< the samples of a batch
  Context, ///< the positions of a sequence
  Weights  ///< the dimensions of matmuls
};
/// A mesh axis over which this compiler can split something.
struct AxisRow {
  llvm::StringLiteral name;
  llvm::StringLiteral what; ///< in words
  Splits splits;
  llvm::StringLiteral within = ""; ///< the axis whose shards it splits again, if there is one
};
/// All axes. Their order is not the mesh's, which --mesh gives: ZeRO shards over the last row that
/// splits the batch and has several ranks, and over each that splits sequences.
inline constexpr AxisRow kAxes[] = {
    {"pp", "pipeline stages", Splits::Program},
    {"dp", "data parallel", Splits::Batch},
    {"fsdp", "the same, with the model's state shared by --zero-stage", Splits::Batch},
    {"cp", "context parallel", Splits::Context},
    {"ulysses", "context parallel by heads, within a ring of cp", Splits::Context, /*within=*/"cp"},
    {"tp", "tensor parallel", Splits::Weights},
};
/// Returns the axis's row, or null.
const AxisRow *findAxis(llvm::StringRef name);
/// Returns true if the ranks along this axis share this out.
bool splits(llvm::StringRef axis, Splits what);
inline bool splitsBatch(llvm::StringRef axis) { return splits(axis, Splits::Batch); }
/// Returns the name of the first axis that splits this.
constexpr llvm::StringLiteral axisThatSplits(Splits what) {
  for (const AxisRow &row : kAxes)
    if (row.splits == what)
      return row.name;
  return "";
}
/// Returns the name of the first axis that splits again what this one leaves.
constexpr llvm::StringLiteral axisWithin(llvm::StringRef axis) {
  for (const AxisRow &row : kAxes)
    if (std::string_view(row.within) == std::string_view(axis))
      return row.name;
  return "";
}
/// The axis whose ranks share out matmuls, and with them what is between those.
inline constexpr llvm::StringLiteral kTensorAxis = axisThatSplits(Splits::Weights);
/// The axis whose ranks share out the positions of every sequence.
inline constexpr llvm::StringLiteral kContextAxis = axisThatSplits(Splits::Context);
/// The axis that splits again what kContextAxis leaves, and exchanges heads where that one passes keys on.
inline constexpr llvm::StringLiteral kHeadsAxis = axisWithin(kContextAxis);
/// Returns true if tensors can be split over this axis, so that a #par.mesh may have it.
bool splitsTensors(llvm::StringRef axis);
/// Returns the names of these axes: "dp, fsdp, cp, ulysses, tp".
std::string tensorAxisNames();

/// Reports an error and fails if the op's module has a mesh without the axis.
llvm::LogicalResult verifyAxis(mlir::Operation *op, mlir::StringAttr axis);

/// Returns the causes of an op, each once, in order: one, or those of all ops that were joined in
/// it.
llvm::SmallVector<CauseAttr> causesOf(mlir::Operation *op);
/// Returns the causes in a location within a pass (dialects/Interfaces/Provenance.h).
llvm::SmallVector<CauseAttr> causesOf(mlir::Location loc);
/// Returns the location with a cause in place of any earlier ones.
mlir::Location withCause(mlir::Location loc, CauseAttr cause);
/// Returns true if a cause of the op has this role.
bool hasRole(mlir::Operation *op, Role role);
/// Returns `where` with the first cause of `from` in another role; unchanged if `from` has none.
mlir::Location withRole(mlir::Location where, mlir::Location from, Role role);
/// Returns true if ops of this role serve gradients of parameters, which are reduced once per step,
/// at any time.
bool isOfParameters(Role role);
} // namespace partita::par

#endif // PARTITA_DIALECTS_PAR_PAR_H
