//===- Interfaces.h - what every pass may ask an op ---------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_INTERFACES_INTERFACES_H
#define PARTITA_DIALECTS_INTERFACES_INTERFACES_H

#include "dialects/Interfaces/Holders.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "runtime/include/partita_rt/collectives.h"
#include "runtime/include/partita_rt/exact_steps.h"

namespace partita {
using partita_rt::CollectiveKind;
using partita_rt::CollectiveRow;

/// What an op stores in 16 bits; see PrecisionInterface.
enum class Precision { Low, Follow, High, Exact };

/// Checks the placements in the op's types against its rule (Par/PlacementRule.cpp). Reports why
/// they do not fit.
mlir::LogicalResult verifyShardRule(mlir::Operation *op);

/// Returns the region's value that a result hands out (HandsOutInterface), or any other value
/// itself.
mlir::Value handedOut(mlir::Value value);
/// Returns the result that hands out a region's value, if that is the value's only use, or any
/// other value itself.
mlir::Value behindRegion(mlir::Value value);

/// Returns true if an analysis of the model looks through the op to its one operand
/// (TransparentInterface).
bool isTransparent(mlir::Operation *op);

/// Checks that a single wait, in the start's block or after the op that hands it out, takes its
/// token and all that it fills.
mlir::LogicalResult verifyStart(mlir::Operation *start);
/// Checks that the wait's token comes from a start, in its block or in a region that hands it out,
/// and that the wait takes all that the start fills.
mlir::LogicalResult verifyWait(mlir::Operation *wait);

/// Builds a wait of class `Wait` for the start of `op` (StartableInterface).
template <typename Wait, typename Start>
mlir::Operation *buildWaitFor(mlir::OpBuilder &builder, mlir::Operation *op, Start start) {
  llvm::SmallVector<mlir::Value> operands{start.getToken()};
  llvm::append_range(operands, start.getFilled());
  return Wait::create(builder, op->getLoc(), op->getResultTypes(), operands);
}

/// Returns the bytes that a rank holds of tensors of these types.
int64_t bytesOf(mlir::TypeRange tensors);

/// Returns a user's name for an element type: bfloat16, float32, int8.
std::string typeName(mlir::Type element);

/// Bytes per rank of a collective over `ranks` ranks, as the runtime counts them (partita_rt/collectives.h).
int64_t wireBytesOf(mlir::Operation *collective, CollectiveKind kind, int64_t ranks);

/// Collectives that take another's place in all steps of training but the exact ones, with their bytes per rank as the runtime counts them.
struct LaterCollectives {
  partita_rt::ExactSteps exact = {};
  llvm::StringRef type; ///< of what is sent, as reports call it
  llvm::SmallVector<std::pair<CollectiveKind, int64_t>, 2> all = {};
};

/// What an op rounds, as messages call it, and the number of the first steps in which it rounds nothing.
struct Loss {
  llvm::StringRef what;
  int64_t exactSteps = 0;
  /// Whether verify knows the algorithm by itself (lib/Interp/OneBitReference.h); without it, its oracle is a program that loses alike.
  bool hasReference = false;
};

/// A member of a table's attribute: `true` or `false` (Tables.td).
mlir::FailureOr<bool> parseFlag(mlir::AsmParser &parser);
/// Returns true if the op computes gradients, since differentiation built it or an op that was
/// fused into it.
bool computesGradients(mlir::Operation *op);

/// See Interfaces.td.
template <typename Op> class Linear : public mlir::OpTrait::TraitBase<Op, Linear> {};
template <typename Op>
class ComparesOperands : public mlir::OpTrait::TraitBase<Op, ComparesOperands> {};
template <typename Op> class UpdateWork : public mlir::OpTrait::TraitBase<Op, UpdateWork> {};
} // namespace partita

#include "dialects/Interfaces/Interfaces.h.inc"

#endif // PARTITA_DIALECTS_INTERFACES_INTERFACES_H
