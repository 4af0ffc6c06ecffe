//===- ParMoves.cpp - moves between shards and full values ------------------------------------===//
//
// Placements of all_gather, reduce_scatter and narrow, their conjugates, and the algebra by which
// they and sums over ranks replace one another.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Par/Reasons.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

//===----------------------------------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------------------------------===//

Interleaving partita::par::interleaving(Operation *op, RankedTensorType shard, StringAttr axis,
                                        int64_t dim, int64_t blocks) {
  MeshAttr mesh = MeshAttr::of(op);
  Layout layout = Layout::of(shard);
  Interleaving result;
  // A rank's number of blocks, if other axes split larger blocks.
  result.blocks = blocks;
  for (const AxisSplit &split : layout.splits[dim])
    if (split.blocks.count < blocks)
      result.blocks /= mesh.sizeOf(split.axis);
  for (int64_t size : shard.getShape().take_front(dim))
    result.blocks *= size;
  result.count = result.blocks == 0 ? 0 : shard.getNumElements() / result.blocks;
  return result;
}

/// Returns true before types have placements, between seeding and materialization.
static bool isUnplaced(RankedTensorType a, RankedTensorType b) {
  return !a.getEncoding() && !b.getEncoding();
}

/// Checks that `full`, whose kind over the axis must be one of `kinds`, and its shard agree.
template <typename Op> static LogicalResult verifyMove(Op op, ArrayRef<Kind> kinds) {
  RankedTensorType fullType = op.getFullType(), shardType = op.getShardType();
  StringAttr axis = op.getAxisAttr();
  auto dim = static_cast<int64_t>(op.getDim()), blocks = static_cast<int64_t>(op.getBlocks());
  Blocks placed(blocks);
  if (auto move = dyn_cast<ReshardInterface>(op.getOperation()))
    placed = move.getShardBlocks();
  Layout full = Layout::of(fullType), shard = Layout::of(shardType);
  if (failed(verifyAxis(op, axis)))
    return failure();
  if (dim < 0 || dim >= fullType.getRank() || fullType.getRank() != shardType.getRank())
    return op.emitOpError() << "along dimension " << dim << " of " << fullType << " and "
                            << shardType << ", of which both must have it";
  if (blocks < 1 || full.shape[dim] % blocks != 0)
    return op.emitOpError() << "in " << blocks << " blocks of a dimension of size "
                            << full.shape[dim];
  if (placed.mirrored && blocks % 2 != 0)
    return op.emitOpError() << "in " << blocks
                            << " blocks, of which not every second one is mirrored";
  if (isUnplaced(fullType, shardType)) {
    if (fullType == shardType)
      return success();
    return op.emitOpError() << "of values without placements keeps their type, it is " << fullType
                            << " and " << shardType;
  }
  auto refuse = [&](Value at, const auto &...words) -> LogicalResult {
    InFlightDiagnostic error = op.emitOpError() << "over " << axis;
    (error << ... << words);
    if (at == op.getValue())
      attachReasons(error, "it", axis, traceReasons(at, axis));
    return error;
  };
  Value fullValue = op.getFullType() == op.getValue().getType() ? op.getValue() : op.getResult();
  Value shardValue = fullValue == op.getValue() ? op.getResult() : op.getValue();
  if (!llvm::is_contained(kinds, full.kind(axis)))
    return refuse(fullValue, " expects a full value that is ", toString(kinds.front()), ", it is ",
                  toString(full.kind(axis)), ": ", fullType);
  if (shard.dimOf(axis) != dim || shard.blocksOf(axis) != placed)
    return refuse(shardValue, " expects a shard that is split along dimension ", dim, " in ",
                  blocks, placed.mirrored ? " mirrored" : "", " blocks, it is ", shardType);
  ArrayRef<AxisSplit> splits = shard.splits[dim];
  const AxisSplit *own =
      llvm::find_if(splits, [&](const AxisSplit &split) { return split.axis == axis; });
  if (own + 1 != splits.end() && own[1].blocks.count == own->blocks.count)
    return op.emitOpError() << "over " << axis << " cannot move shards that " << own[1].axis
                            << " splits again: " << shardType;
  full.set(axis, Kind::Invariant);
  shard.set(axis, Kind::Invariant);
  SmallVector<int64_t> shape(shardType.getShape());
  shape[dim] *= MeshAttr::of(op).sizeOf(axis);
  bool cotangents = true;
  if (auto function = op->template getParentOfType<FunctionOpInterface>())
    cotangents = !function->hasAttr(ParDialect::kNoCotangents);
  if (!cotangents)
    full = full.valueOnly(), shard = shard.valueOnly();
  if (!(full == shard) || shape != fullType.getShape() ||
      fullType.getElementType() != shardType.getElementType())
    return op.emitOpError() << "over " << axis << ": " << shardType << " is not a shard of "
                            << fullType;
  return success();
}

LogicalResult AllGatherOp::verify() {
  return verifyMove(*this, {Kind::Invariant, Kind::Replicated});
}
LogicalResult ReduceScatterOp::verify() { return verifyMove(*this, {Kind::Partial}); }
LogicalResult AllGatherStartOp::verify() {
  return verifyMove(*this, {Kind::Invariant, Kind::Replicated});
}
LogicalResult ReduceScatterStartOp::verify() { return verifyMove(*this, {Kind::Partial}); }
LogicalResult NarrowOp::verify() { return verifyMove(*this, {Kind::Invariant, Kind::Replicated}); }
LogicalResult WidenOp::verify() { return verifyMove(*this, {Kind::Partial}); }

//===----------------------------------------------------------------------------------------------===//
// Start and wait
//===----------------------------------------------------------------------------------------------===//

template <typename Start, typename Op> static Operation *buildStartFor(Op op, OpBuilder &builder) {
  return Start::create(builder, op.getLoc(), builder.getI64Type(), op.getResult().getType(),
                       op.getValue(), op.getAxisAttr(), op.getDimAttr(), op.getBlocksAttr(),
                       op.getReasonAttr());
}

Operation *AllGatherOp::buildStart(OpBuilder &builder) {
  return buildStartFor<AllGatherStartOp>(*this, builder);
}

Operation *AllGatherOp::buildWait(OpBuilder &builder, AsyncStartInterface start) {
  return buildWaitFor<WaitOp>(builder, *this, start);
}

Operation *ReduceScatterOp::buildStart(OpBuilder &builder) {
  return buildStartFor<ReduceScatterStartOp>(*this, builder);
}

Operation *ReduceScatterOp::buildWait(OpBuilder &builder, AsyncStartInterface start) {
  return buildWaitFor<WaitOp>(builder, *this, start);
}

//===----------------------------------------------------------------------------------------------===//
// Conjugates
//===----------------------------------------------------------------------------------------------===//

/// Moves the cotangent of `op`'s result back, along the same dimension.
template <typename To, typename From>
static SmallVector<Value> moveBack(From op, OpBuilder &builder, ValueRange cotangents) {
  return {To::create(builder, op.getLoc(), cotangentType(op.getValue().getType()), cotangents[0],
                     op.getAxisAttr(), op.getDimAttr(), op.getBlocksAttr(),
                     builder.getStringAttr("gradient"))
              .getResult()};
}

/// The same between a narrow and a widen.
template <typename To, typename From>
static SmallVector<Value> moveBackMirrored(From op, OpBuilder &builder, ValueRange cotangents) {
  SmallVector<Value> back = moveBack<To>(op, builder, cotangents);
  back[0].getDefiningOp<To>().setMirrored(op.getMirrored());
  return back;
}

static AllGatherOp gather(OpBuilder &builder, Location loc, Type type, Value shard, StringAttr axis,
                          IntegerAttr dim, IntegerAttr blocks, StringAttr reason) {
  return AllGatherOp::create(builder, loc, type, shard, axis, dim, blocks, reason,
                             /*again=*/UnitAttr());
}

/// If ranks continue with different work, the gradient is the row's conjugate; if all continue
/// alike, each takes its shard.
static_assert(partita_rt::rowOf(AllGatherOp::kKind).conjugate == ReduceScatterOp::kKind);
SmallVector<Value> AllGatherOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  if (Layout::of(getResult().getType()).kind(getAxisAttr()) == Kind::Replicated)
    return moveBack<ReduceScatterOp>(*this, builder, cotangents);
  return moveBack<NarrowOp>(*this, builder, cotangents);
}

SmallVector<Value> ReduceScatterOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {gather(builder, getLoc(), cotangentType(getValue().getType()), cotangents[0],
                 getAxisAttr(), getDimAttr(), getBlocksAttr(), builder.getStringAttr("gradient"))};
}

/// Of a value that ranks use for different work, each has a share of the cotangent.
SmallVector<Value> NarrowOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  if (Layout::of(getValue().getType()).kind(getAxisAttr()) == Kind::Replicated)
    return moveBackMirrored<WidenOp>(*this, builder, cotangents);
  return {gather(builder, getLoc(), cotangentType(getValue().getType()), cotangents[0],
                 getAxisAttr(), getDimAttr(), getBlocksAttr(), builder.getStringAttr("gradient"))};
}

SmallVector<Value> WidenOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return moveBackMirrored<NarrowOp>(*this, builder, cotangents);
}

//===----------------------------------------------------------------------------------------------===//
// From one dimension to another
//===----------------------------------------------------------------------------------------------===//

LogicalResult AllToAllOp::verify() {
  RankedTensorType type = getValue().getType(), result = getResult().getType();
  if (failed(verifyAxis(*this, getAxisAttr())))
    return failure();
  auto from = static_cast<int64_t>(getFrom()), to = static_cast<int64_t>(getTo());
  if (from < 0 || to < 0 || from == to || std::max(from, to) >= type.getRank())
    return emitOpError() << "from dimension " << from << " to " << to << " of " << type
                         << ", of which both must be dimensions";
  if (static_cast<int64_t>(getBlocks()) < 1 || static_cast<int64_t>(getRuns()) < 1)
    return emitOpError() << "has blocks " << static_cast<int64_t>(getBlocks()) << " and runs "
                         << static_cast<int64_t>(getRuns()) << ", of which there are at least 1";
  if (isUnplaced(type, result)) {
    if (type == result)
      return success();
    return emitOpError() << "of values without placements keeps their type, it is " << type
                         << " and " << result;
  }
  Layout layout = Layout::of(type);
  if (layout.dimOf(getAxisAttr()) != from || layout.blocksOf(getAxisAttr()) != blocksAlong(from))
    return emitOpError() << "over " << getAxisAttr() << " expects a shard along dimension " << from
                         << ", it is " << type;
  layout.shard(getAxisAttr(), to, blocksAlong(to));
  auto expected = layout.localType(type.getElementType(), MeshAttr::of(*this),
                                   [&](const Twine &error) { emitOpError() << error; });
  if (failed(expected))
    return failure();
  if (sameValues(TypeRange(*expected), TypeRange(result)))
    return success();
  return emitOpError() << "over " << getAxisAttr() << " yields " << *expected << ", not " << result;
}

static_assert(partita_rt::rowOf(AllToAllOp::kKind).conjugate == AllToAllOp::kKind);
SmallVector<Value> AllToAllOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {AllToAllOp::create(builder, getLoc(), cotangentType(getValue().getType()), cotangents[0],
                             getAxisAttr(), getToAttr(), getFromAttr(), getBlocksAttr(),
                             builder.getStringAttr("gradient"), getRunsAttr())
              .getResult()};
}

/// There and back again is the value itself.
LogicalResult AllToAllOp::canonicalize(AllToAllOp op, PatternRewriter &rewriter) {
  auto there = op.getValue().getDefiningOp<AllToAllOp>();
  if (!there || there.getAxisAttr() != op.getAxisAttr() || there.getFrom() != op.getTo() ||
      there.getTo() != op.getFrom() || there.getValue().getType() != op.getResult().getType())
    return failure();
  rewriter.replaceOp(op, there.getValue());
  return success();
}

//===----------------------------------------------------------------------------------------------===//
// Algebra
//===----------------------------------------------------------------------------------------------===//

template <typename A, typename B> static bool sameCut(A a, B b) {
  return a.getAxisAttr() == b.getAxisAttr() && a.getDim() == b.getDim() &&
         a.getShardBlocks() == b.getShardBlocks();
}

/// Folds f of a gather that is only for this f: the gather's result is replicated.
LogicalResult FOp::canonicalize(FOp f, PatternRewriter &rewriter) {
  auto inner = f.getValue().getDefiningOp<AllGatherOp>();
  if (!inner || inner.getAxisAttr() != f.getAxisAttr() || !inner->hasOneUse())
    return failure();
  Location reasons = FusedLoc::get(f.getContext(), {inner.getLoc(), f.getLoc()});
  rewriter.replaceOp(f, gather(rewriter, reasons, f.getResult().getType(), inner.getValue(),
                               inner.getAxisAttr(), inner.getDimAttr(), inner.getBlocksAttr(),
                               inner.getReasonAttr()));
  rewriter.eraseOp(inner);
  return success();
}

/// Returns the operand of a sum of one value over all ranks of an axis; null for other ops.
static Value summedUp(Operation *op, StringAttr axis) {
  if (auto g = dyn_cast_or_null<GOp>(op); g && g.getAxisAttr() == axis)
    return g.getValue();
  if (auto sum = dyn_cast_or_null<AllReduceOp>(op);
      sum && sum.getAxisAttr() == axis && sum.getValues().size() == 1)
    return sum.getValues()[0];
  return {};
}

/// Returns true if a sum over ranks is only used by this narrow, and its shard as a shard. Then it
/// becomes a reduce-scatter, and the full value, with as many bytes again, is gathered where it is
/// needed rather than kept.
static bool isScattered(NarrowOp narrow) {
  return summedUp(narrow.getValue().getDefiningOp(), narrow.getAxisAttr()) &&
         narrow.getValue().hasOneUse() && llvm::any_of(narrow->getUsers(), [&](Operation *user) {
           auto gather = dyn_cast<AllGatherOp>(user);
           return !gather || !sameCut(gather, narrow);
         });
}

/// Folds a gather of the shards that every rank cut out of a full value: it is that value.
LogicalResult AllGatherOp::canonicalize(AllGatherOp op, PatternRewriter &rewriter) {
  auto narrow = op.getValue().getDefiningOp<NarrowOp>();
  if (!narrow || !sameCut(op, narrow) || isScattered(narrow))
    return failure();
  Value full = narrow.getValue();
  if (full.getType() == op.getResult().getType()) {
    rewriter.replaceOp(op, full);
    return success();
  }
  if (Layout::of(op.getResult().getType()).kind(op.getAxisAttr()) != Kind::Replicated ||
      Layout::of(full.getType()).kind(op.getAxisAttr()) != Kind::Invariant)
    return failure();
  rewriter.replaceOpWithNewOp<FOp>(op, op.getResult().getType(), full, op.getAxisAttr());
  return success();
}

/// Moves a narrow before an elementwise op with a sum over ranks as an operand, if nothing else
/// uses these: the op runs on shards, so that the sum becomes a reduce-scatter.
static LogicalResult narrowOperands(NarrowOp op, PatternRewriter &rewriter) {
  Operation *definer = op.getValue().getDefiningOp();
  Type full = op.getFullType();
  if (!isa_and_nonnull<ShardInterface>(definer) || definer->getNumResults() != 1 ||
      definer->getNumOperands() < 2 || !definer->hasOneUse() ||
      !llvm::all_of(definer->getOperandTypes(), [&](Type type) { return type == full; }) ||
      llvm::none_of(definer->getOperands(), [&](Value operand) {
        return operand.hasOneUse() && summedUp(operand.getDefiningOp(), op.getAxisAttr());
      }))
    return failure();
  std::string error;
  const ShardRule *rule = ruleOf(definer, error);
  Layout shard = Layout::of(op.getShardType()), placed(Layout::of(full).shape);
  SmallVector<Layout, 0> operands(definer->getNumOperands(), shard);
  SmallVector<bool> carriesCotangent(operands.size(), false);
  RuleProblem problem;
  if (!rule || !placeResults(*rule, operands, carriesCotangent, placed, problem) ||
      !(placed == shard))
    return failure();
  IRMapping mapping;
  for (Value operand : definer->getOperands())
    mapping.map(operand, NarrowOp::create(rewriter, op.getLoc(), op.getShardType(), operand,
                                          op.getAxisAttr(), op.getDimAttr(), op.getBlocksAttr(),
                                          op.getReasonAttr(), op.getMirroredAttr())
                             .getResult());
  Operation *onShards = rewriter.clone(*definer, mapping);
  onShards->getResult(0).setType(op.getShardType());
  cast<ShardInterface>(onShards).localize();
  rewriter.replaceOp(op, onShards->getResults());
  rewriter.eraseOp(definer);
  return success();
}

/// Folds a narrow: of a sum over ranks of which only shards are used, to a reduce-scatter; of a
/// gathered value, to the shard that was there.
LogicalResult NarrowOp::canonicalize(NarrowOp op, PatternRewriter &rewriter) {
  Operation *definer = op.getValue().getDefiningOp();
  if (auto gathered = dyn_cast_or_null<AllGatherOp>(definer))
    if (sameCut(op, gathered) && gathered.getValue().getType() == op.getResult().getType()) {
      rewriter.replaceOp(op, gathered.getValue());
      return success();
    }
  Value partial = summedUp(definer, op.getAxisAttr());
  if (!partial)
    return narrowOperands(op, rewriter);
  if (!definer->hasOneUse())
    return failure();
  auto sum = dyn_cast<AllReduceOp>(definer);
  StringAttr reason = sum ? sum.getReasonAttr() : op.getReasonAttr();
  Location loc = definer->getLoc();
  if (hasRole(op, Role::Moved)) // else it would seem to be for another op of this stage
    loc = withRole(loc, loc, Role::Sent);
  rewriter.replaceOp(op, ReduceScatterOp::create(rewriter, loc, op.getResult().getType(), partial,
                                                 op.getAxisAttr(), op.getDimAttr(),
                                                 op.getBlocksAttr(), reason));
  rewriter.eraseOp(definer);
  return success();
}
