//===- Zero.cpp - flat shards: types, conjugates ----------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "dialects/Par/Reasons.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::zero;
using par::Kind;
using par::Layout;

#include "dialects/Zero/ZeroDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Zero/ZeroOps.cpp.inc"

void ZeroDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Zero/ZeroOps.cpp.inc"
      >();
}

StringAttr partita::zero::shardingAxis(par::MeshAttr mesh) {
  for (const par::AxisRow &axis : llvm::reverse(par::kAxes))
    if (axis.splitsBatch && mesh.sizeOf(axis.name) > 1)
      return StringAttr::get(mesh.getContext(), axis.name);
  return {};
}

RankedTensorType partita::zero::pieceType(Type whole, StringAttr axis, par::MeshAttr mesh) {
  if (cast<RankedTensorType>(whole).getRank() == 0)
    return {}; // one element, indistinguishable by rules from an update's scalars
  Layout layout = Layout::of(whole);
  layout.set(axis, Kind::Flat);
  auto piece =
      layout.localType(cast<RankedTensorType>(whole).getElementType(), mesh, [](const Twine &) {});
  return succeeded(piece) ? *piece : RankedTensorType();
}

int64_t partita::zero::paddingOf(Type piece, StringAttr axis, par::MeshAttr mesh) {
  Layout layout = Layout::of(piece);
  layout.set(axis, Kind::Invariant);
  auto type = cast<RankedTensorType>(piece);
  auto whole = layout.localType(type.getElementType(), mesh, [](const Twine &) {});
  return succeeded(whole) ? type.getNumElements() * mesh.sizeOf(axis) - whole->getNumElements() : 0;
}

//===----------------------------------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------------------------------===//

static bool hasCotangents(Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  return !function || !function->hasAttr(par::ParDialect::kNoCotangents);
}

/// Checks that `whole`, which must be one of `kinds` over the axis, and its flat shard agree.
/// `given` is the op's operand among the two.
static LogicalResult verifyPiece(Operation *op, StringAttr axis, Value given, Type wholeType,
                                 Type pieceType, ArrayRef<Kind> kinds) {
  Layout whole = Layout::of(wholeType), piece = Layout::of(pieceType);
  auto refuse = [&](Kind wanted, Kind is, Type type) -> LogicalResult {
    InFlightDiagnostic error = op->emitOpError();
    error << "over " << axis << " expects " << (type == wholeType ? "a full value" : "a shard")
          << " that is " << toString(wanted) << ", it is " << toString(is) << ": " << type;
    if (given.getType() == type)
      par::attachReasons(error, "it", axis, par::traceReasons(given, axis));
    return error;
  };
  if (!llvm::is_contained(kinds, whole.kind(axis)))
    return refuse(kinds.front(), whole.kind(axis), wholeType);
  if (piece.flat.empty() || piece.flat.back() != axis)
    return refuse(Kind::Flat, piece.kind(axis), pieceType);
  whole.set(axis, Kind::Flat);
  if (!hasCotangents(op))
    whole = whole.valueOnly(), piece = piece.valueOnly();
  auto element = cast<RankedTensorType>(wholeType).getElementType();
  auto expected = whole.localType(element, par::MeshAttr::of(op), [](const Twine &) {});
  auto actual = cast<RankedTensorType>(pieceType);
  if (succeeded(expected) && whole == piece && expected->getShape() == actual.getShape() &&
      element == actual.getElementType())
    return success();
  InFlightDiagnostic error = op->emitOpError();
  error << "over " << axis << ": " << pieceType << " is not a shard of " << wholeType;
  if (succeeded(expected))
    error << ", that is " << *expected;
  return error;
}

/// Checks a bucket that gathers or reduce-scatters.
static LogicalResult verifyBucket(Operation *op, StringAttr axis, ValueRange operands,
                                  ValueRange results, bool gathers) {
  if (operands.size() != results.size() || operands.empty())
    return op->emitOpError() << "needs one result per value, and at least one; it has "
                             << operands.size() << " values and " << results.size() << " results";
  for (auto [operand, result] : llvm::zip(operands, results)) {
    Type given = operand.getType(), made = result.getType();
    if (failed(gathers ? verifyPiece(op, axis, operand, made, given,
                                     {Kind::Invariant, Kind::Replicated})
                       : verifyPiece(op, axis, operand, given, made, {Kind::Partial})))
      return failure();
  }
  return success();
}

LogicalResult ShardOp::verify() {
  return verifyPiece(*this, getAxisAttr(), getValue(), getValue().getType(), getType(),
                     {Kind::Invariant});
}
LogicalResult GatherOp::verify() {
  return verifyBucket(*this, getAxisAttr(), getPieces(), getWholes(), /*gathers=*/true);
}
LogicalResult ReduceScatterOp::verify() {
  return verifyBucket(*this, getAxisAttr(), getValues(), getPieces(), /*gathers=*/false);
}
LogicalResult GatherStartOp::verify() {
  return verifyBucket(*this, getAxisAttr(), getValues(), getBuffers(), /*gathers=*/true);
}
LogicalResult ReduceScatterStartOp::verify() {
  return verifyBucket(*this, getAxisAttr(), getValues(), getBuffers(), /*gathers=*/false);
}

//===----------------------------------------------------------------------------------------------===//
// Conjugates
//===----------------------------------------------------------------------------------------------===//

SmallVector<Value> ShardOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  auto gather = GatherOp::create(builder, getLoc(), par::cotangentType(getValue().getType()),
                                 cotangents[0], getAxisAttr(), builder.getStringAttr("gradient"),
                                 /*again=*/UnitAttr());
  return {gather.getResult(0)};
}

static_assert(partita_rt::rowOf(GatherOp::kKind).conjugate == ReduceScatterOp::kKind);
SmallVector<Value> GatherOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  SmallVector<Value> gradients;
  for (auto [piece, whole, cotangent] : llvm::zip(getPieces(), getWholes(), cotangents)) {
    Value &gradient = gradients.emplace_back();
    if (!cotangent)
      continue;
    Type type = par::cotangentType(piece.getType());
    if (Layout::of(whole.getType()).kind(getAxisAttr()) == Kind::Replicated)
      gradient = ReduceScatterOp::create(builder, getLoc(), type, cotangent, getAxisAttr(),
                                         builder.getStringAttr("gradient"))
                     .getResult(0);
    else
      gradient = ShardOp::create(builder, getLoc(), type, cotangent, getAxisAttr());
  }
  return gradients;
}

//===----------------------------------------------------------------------------------------------===//
// Start and wait
//===----------------------------------------------------------------------------------------------===//

Operation *GatherOp::buildStart(OpBuilder &builder) {
  return GatherStartOp::create(builder, getLoc(), builder.getI64Type(), getResultTypes(),
                               getPieces(), getAxisAttr(), getReasonAttr());
}

Operation *GatherOp::buildWait(OpBuilder &builder, AsyncStartInterface start) {
  return buildWaitFor<par::WaitOp>(builder, *this, start);
}

Operation *ReduceScatterOp::buildStart(OpBuilder &builder) {
  return ReduceScatterStartOp::create(builder, getLoc(), builder.getI64Type(), getResultTypes(),
                                      getValues(), getAxisAttr(), getReasonAttr());
}

Operation *ReduceScatterOp::buildWait(OpBuilder &builder, AsyncStartInterface start) {
  return buildWaitFor<par::WaitOp>(builder, *this, start);
}
