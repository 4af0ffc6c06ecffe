//===- Interfaces.h - what every pass may ask an op ---------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_INTERFACES_H
#define PARTITA_DIALECTS_INTERFACES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "runtime/include/partita_rt/collectives.h"

namespace partita {
using partita_rt::CollectiveKind;
using partita_rt::CollectiveRow;

/// What an op stores in 16 bits: PrecisionInterface.
enum class Precision { Low, Follow, High, Exact };

/// Checks the placements in the op's types against its rule (Par/PlacementRule.cpp); reports why.
mlir::LogicalResult verifyShardRule(mlir::Operation *op);

/// The region's value that a result hands out (HandsOutInterface); any other value itself.
mlir::Value handedOut(mlir::Value value);
/// The result that hands out a region's value, if that is the value's only use; any other value itself.
mlir::Value behindRegion(mlir::Value value);

/// Checks that one wait, in the start's block or behind the op that hands it out, takes its token
/// and all that it fills.
mlir::LogicalResult verifyStart(mlir::Operation *start);
/// Checks that the wait's token comes from a start, in its block or in a region that hands it out,
/// and that it takes all that this fills.
mlir::LogicalResult verifyWait(mlir::Operation *wait);

/// Builds the wait of one class for the start of `op` (StartableInterface).
template <typename Wait, typename Start>
mlir::Operation *buildWaitFor(mlir::OpBuilder &builder, mlir::Operation *op, Start start) {
  llvm::SmallVector<mlir::Value> operands{start.getToken()};
  llvm::append_range(operands, start.getFilled());
  return Wait::create(builder, op->getLoc(), op->getResultTypes(), operands);
}

/// Bytes that a rank holds of tensors of these types.
int64_t bytesOf(mlir::TypeRange tensors);

/// Bytes per rank of a collective over `ranks` ranks, as the runtime counts them (partita_rt/collectives.h).
int64_t wireBytesOf(mlir::Operation *collective, CollectiveKind kind, int64_t ranks);

/// A member of a table's attribute: `true` or `false` (Tables.td).
mlir::FailureOr<bool> parseFlag(mlir::AsmParser &parser);
/// Does the op compute gradients: because differentiation built it, or a part that it was fused with?
bool computesGradients(mlir::Operation *op);

/// See Interfaces.td.
template <typename Op> class UpdateWork : public mlir::OpTrait::TraitBase<Op, UpdateWork> {};
} // namespace partita

#include "dialects/Interfaces/Interfaces.h.inc"

#endif // PARTITA_DIALECTS_INTERFACES_H
