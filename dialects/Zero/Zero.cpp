//===- Zero.cpp - flat shards: types, conjugates ----------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "dialects/Par/Reasons.h"
#include "mlir/IR/OpImplementation.h"
#include "runtime/include/partita_rt/int4_chunks.h"

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

SmallVector<StringAttr> partita::zero::shardingAxes(par::MeshAttr mesh) {
  StringRef ofBatch;
  for (const par::AxisRow &axis : par::kAxes)
    if (axis.splits == par::Splits::Batch && mesh.sizeOf(axis.name) > 1)
      ofBatch = axis.name; // the last one
  SmallVector<StringAttr> axes;
  for (StringAttr axis : llvm::reverse(mesh.getAxes()))
    if (axis == ofBatch || (par::splits(axis, par::Splits::Context) && mesh.sizeOf(axis) > 1))
      axes.push_back(axis);
  return axes;
}

RankedTensorType partita::zero::shardType(Type full, ArrayRef<StringAttr> axes,
                                          par::MeshAttr mesh) {
  if (cast<RankedTensorType>(full).getRank() == 0)
    return {}; // one element, indistinguishable by rules from an update's scalars
  Layout layout = Layout::of(full);
  for (StringAttr axis : axes)
    layout.set(axis, Kind::Flat);
  auto shard =
      layout.localType(cast<RankedTensorType>(full).getElementType(), mesh, [](const Twine &) {});
  return succeeded(shard) ? *shard : RankedTensorType();
}

bool partita::zero::isSecondaryCopy(Type gathered, StringAttr axis) {
  if (!isa<RankedTensorType>(gathered) || !par::splitsBatch(axis))
    return false;
  Layout layout = Layout::of(gathered);
  return !layout.flat.empty() && par::splitsBatch(layout.flat.back());
}

RankedTensorType partita::zero::scalesType(Type type, int64_t block, par::MeshAttr mesh) {
  auto tensor = cast<RankedTensorType>(type);
  Layout layout = Layout::of(type);
  if (!par::holdsWholeBlocks(type, block, mesh) || tensor.getNumElements() % block != 0)
    return {};
  layout.shape.back() /= block;
  auto scales = layout.localType(Float32Type::get(type.getContext()), mesh, [](const Twine &) {});
  bool isShardOfThem =
      succeeded(scales) && scales->getNumElements() == tensor.getNumElements() / block;
  return isShardOfThem ? *scales : RankedTensorType();
}

int64_t partita::zero::paddingOf(Type shard, par::MeshAttr mesh) {
  Layout layout = Layout::of(shard);
  auto type = cast<RankedTensorType>(shard);
  int64_t elements = type.getNumElements();
  for (StringAttr axis : layout.flat)
    elements *= mesh.sizeOf(axis);
  auto full = layout.withoutFlat().localType(type.getElementType(), mesh, [](const Twine &) {});
  return succeeded(full) ? elements - full->getNumElements() : 0;
}

//===----------------------------------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------------------------------===//

static bool hasCotangents(Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  return !function || !function->hasAttr(par::ParDialect::kNoCotangents);
}

/// Checks that `full`, which must be one of `kinds` over the axis, and its flat shard agree.
/// `given` is the op's operand among the two.
static LogicalResult verifyShard(Operation *op, StringAttr axis, Value given, Type fullType,
                                 Type shardType, ArrayRef<Kind> kinds) {
  Layout full = Layout::of(fullType), shard = Layout::of(shardType);
  auto refuse = [&](Kind wanted, Kind is, Type type) -> LogicalResult {
    InFlightDiagnostic error = op->emitOpError();
    error << "over " << axis << " expects " << (type == fullType ? "a full value" : "a shard")
          << " that is " << toString(wanted) << ", it is " << toString(is) << ": " << type;
    if (given.getType() == type)
      par::attachReasons(error, "it", axis, par::traceReasons(given, axis));
    return error;
  };
  if (!llvm::is_contained(kinds, full.kind(axis)))
    return refuse(kinds.front(), full.kind(axis), fullType);
  if (shard.flat.empty() || shard.flat.back() != axis)
    return refuse(Kind::Flat, shard.kind(axis), shardType);
  full.set(axis, Kind::Flat);
  if (!hasCotangents(op))
    full = full.valueOnly(), shard = shard.valueOnly();
  auto element = cast<RankedTensorType>(fullType).getElementType();
  auto expected = full.localType(element, par::MeshAttr::of(op), [](const Twine &) {});
  auto actual = cast<RankedTensorType>(shardType);
  if (succeeded(expected) && full == shard && expected->getShape() == actual.getShape() &&
      element == actual.getElementType())
    return success();
  InFlightDiagnostic error = op->emitOpError();
  error << "over " << axis << ": " << shardType << " is not a shard of " << fullType;
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
    if (failed(gathers ? verifyShard(op, axis, operand, made, given,
                                     {Kind::Invariant, Kind::Replicated})
                       : verifyShard(op, axis, operand, given, made, {Kind::Partial})))
      return failure();
  }
  return success();
}

LogicalResult ShardOp::verify() {
  return verifyShard(*this, getAxisAttr(), getValue(), getValue().getType(), getType(),
                     {Kind::Invariant});
}
LogicalResult GatherOp::verify() {
  if (getInt8Block())
    for (Value full : getFull())
      if (!scalesType(full.getType(), static_cast<int64_t>(*getInt8Block()),
                      par::MeshAttr::of(*this)))
        return emitOpError() << "rounds blocks of " << *getInt8Block() << ", which "
                             << full.getType() << " does not hold whole";
  return verifyBucket(*this, getAxisAttr(), getShards(), getFull(), /*gathers=*/true);
}

/// Checks that 8-bit values and scales are of the numbers' blocks.
static LogicalResult verifyBlocks(Operation *op, Type numbers, Type values, Type scales,
                                  uint64_t block) {
  auto expected = scalesType(numbers, static_cast<int64_t>(block), par::MeshAttr::of(op));
  if (!expected)
    return op->emitOpError() << "of blocks of " << block << ", which " << numbers
                             << " does not hold whole";
  auto tensor = cast<RankedTensorType>(numbers);
  auto bytes = tensor.clone(IntegerType::get(op->getContext(), 8));
  if (values != bytes || scales != expected)
    return op->emitOpError() << "of " << numbers << " in blocks of " << block << " has " << bytes
                             << " and " << expected << ", not " << values << " and " << scales;
  return success();
}

LogicalResult QuantizeBlocksOp::verify() {
  return verifyBlocks(*this, getX().getType(), getValues().getType(), getScales().getType(),
                      getBlock());
}
LogicalResult DequantizeBlocksOp::verify() {
  return verifyBlocks(*this, getX().getType(), getValues().getType(), getScales().getType(),
                      getBlock());
}
LogicalResult RoundBlocksOp::verify() {
  if (getX().getType() != getType())
    return emitOpError() << "changes no type, from " << getX().getType() << " to " << getType();
  if (!scalesType(getType(), static_cast<int64_t>(getBlock()), par::MeshAttr::of(*this)))
    return emitOpError() << "of blocks of " << getBlock() << ", which " << getType()
                         << " does not hold whole";
  return success();
}
std::optional<Loss> ReduceScatterOp::getLoss() {
  return getInt4Block() ? std::optional(Loss{kRoundedGradients}) : std::nullopt;
}

LogicalResult ReduceScatterOp::verify() {
  if (getInt4Block() && failed(verifyWholeWords(*this, *getInt4Block())))
    return failure();
  if (getInt4Block() && !llvm::all_of(getValues().getTypes(), [](Type type) {
        return isa<FloatType>(getElementTypeOrSelf(type));
      }))
    return emitOpError() << "rounds floats, found " << getValues().getTypes();
  return verifyBucket(*this, getAxisAttr(), getValues(), getShards(), /*gathers=*/false);
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
  for (auto [shard, full, cotangent] : llvm::zip(getShards(), getFull(), cotangents)) {
    Value &gradient = gradients.emplace_back();
    if (!cotangent)
      continue;
    Type type = par::cotangentType(shard.getType());
    if (Layout::of(full.getType()).kind(getAxisAttr()) == Kind::Replicated)
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
                               getShards(), getAxisAttr(), getReasonAttr());
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
