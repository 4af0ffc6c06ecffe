//===- ParMoves.cpp - from pieces to wholes and back ------------------------------------------===//
//
// Placements of all_gather, reduce_scatter and narrow, their conjugates, and the algebra by which
// they and the sums over ranks replace one another.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Par/Reasons.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

//===----------------------------------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------------------------------===//

Interleaving partita::par::interleaving(Operation *op, RankedTensorType piece, StringAttr axis,
                                        int64_t dim, int64_t blocks) {
  MeshAttr mesh = MeshAttr::of(op);
  Layout layout = Layout::of(piece);
  Interleaving result;
  // The blocks that one rank has, where other axes split what the blocks are parts of.
  result.blocks = blocks;
  for (const AxisSplit &split : layout.splits[dim])
    if (split.blocks.count < blocks)
      result.blocks /= mesh.sizeOf(split.axis);
  for (int64_t size : piece.getShape().take_front(dim))
    result.blocks *= size;
  result.count = result.blocks == 0 ? 0 : piece.getNumElements() / result.blocks;
  return result;
}

/// Nothing is placed yet: the op stands between seeds and types.
static bool isUnplaced(RankedTensorType a, RankedTensorType b) {
  return !a.getEncoding() && !b.getEncoding();
}

/// `whole`, which `kind`s allow over the axis, and the piece of it must agree.
template <typename Op> static LogicalResult verifyMove(Op op, ArrayRef<Kind> kinds) {
  RankedTensorType wholeType = op.getWhole(), pieceType = op.getPiece();
  StringAttr axis = op.getAxisAttr();
  auto dim = static_cast<int64_t>(op.getDim()), blocks = static_cast<int64_t>(op.getBlocks());
  Layout whole = Layout::of(wholeType), piece = Layout::of(pieceType);
  if (failed(verifyAxis(op, axis)))
    return failure();
  if (dim < 0 || dim >= wholeType.getRank() || wholeType.getRank() != pieceType.getRank())
    return op.emitOpError() << "along dimension " << dim << " of " << wholeType << " and "
                            << pieceType << ", of which both must have it";
  if (blocks < 1 || whole.shape[dim] % blocks != 0)
    return op.emitOpError() << "in " << blocks << " blocks of a dimension of size "
                            << whole.shape[dim];
  if (isUnplaced(wholeType, pieceType)) {
    if (wholeType == pieceType)
      return success();
    return op.emitOpError() << "of values without placements keeps their type, it is " << wholeType
                            << " and " << pieceType;
  }
  auto refuse = [&](Value at, const auto &...words) -> LogicalResult {
    InFlightDiagnostic error = op.emitOpError() << "over " << axis;
    (error << ... << words);
    if (at == op.getValue())
      attachReasons(error, "it", axis, traceReasons(at, axis));
    return error;
  };
  Value wholeValue = op.getWhole() == op.getValue().getType() ? op.getValue() : op.getResult();
  Value pieceValue = wholeValue == op.getValue() ? op.getResult() : op.getValue();
  if (!llvm::is_contained(kinds, whole.kind(axis)))
    return refuse(wholeValue, " wants a whole value that is ", toString(kinds.front()), ", it is ",
                  toString(whole.kind(axis)), ": ", wholeType);
  if (piece.dimOf(axis) != dim || piece.blocksOf(axis) != blocks)
    return refuse(pieceValue, " wants a piece that is sharded along dimension ", dim, " in ",
                  blocks, " blocks, it is ", pieceType);
  ArrayRef<AxisSplit> splits = piece.splits[dim];
  const AxisSplit *own =
      llvm::find_if(splits, [&](const AxisSplit &split) { return split.axis == axis; });
  if (own + 1 != splits.end() && own[1].blocks == own->blocks)
    return op.emitOpError() << "over " << axis << " cannot move pieces that " << own[1].axis
                            << " splits again: " << pieceType;
  whole.set(axis, Kind::Invariant);
  piece.set(axis, Kind::Invariant);
  SmallVector<int64_t> shape(pieceType.getShape());
  shape[dim] *= MeshAttr::of(op).sizeOf(axis);
  bool cotangents = true;
  if (auto function = op->template getParentOfType<FunctionOpInterface>())
    cotangents = !function->hasAttr(ParDialect::kNoCotangents);
  if (!cotangents)
    whole = whole.valueOnly(), piece = piece.valueOnly();
  if (!(whole == piece) || shape != wholeType.getShape() ||
      wholeType.getElementType() != pieceType.getElementType())
    return op.emitOpError() << "over " << axis << ": " << pieceType << " is no piece of "
                            << wholeType;
  return success();
}

LogicalResult AllGatherOp::verify() {
  return verifyMove(*this, {Kind::Invariant, Kind::Replicated});
}
LogicalResult ReduceScatterOp::verify() { return verifyMove(*this, {Kind::Partial}); }
LogicalResult NarrowOp::verify() { return verifyMove(*this, {Kind::Invariant}); }

//===----------------------------------------------------------------------------------------------===//
// Conjugates
//===----------------------------------------------------------------------------------------------===//

/// The op that moves the cotangent of `op`'s result, along the same dimension.
template <typename To, typename From>
static SmallVector<Value> moveBack(From op, OpBuilder &builder, ValueRange cotangents) {
  return {To::create(builder, op.getLoc(), cotangentType(op.getValue().getType()), cotangents[0],
                     op.getAxisAttr(), op.getDimAttr(), op.getBlocksAttr(),
                     builder.getStringAttr("gradient"))
              .getResult()};
}

static AllGatherOp gather(OpBuilder &builder, Location loc, Type type, Value piece, StringAttr axis,
                          IntegerAttr dim, IntegerAttr blocks, StringAttr reason) {
  return AllGatherOp::create(builder, loc, type, piece, axis, dim, blocks, reason,
                             /*again=*/UnitAttr());
}

SmallVector<Value> AllGatherOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  if (Layout::of(getResult().getType()).kind(getAxisAttr()) == Kind::Replicated)
    return moveBack<ReduceScatterOp>(*this, builder, cotangents);
  return moveBack<NarrowOp>(*this, builder, cotangents);
}

SmallVector<Value> ReduceScatterOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {gather(builder, getLoc(), cotangentType(getValue().getType()), cotangents[0],
                 getAxisAttr(), getDimAttr(), getBlocksAttr(), builder.getStringAttr("gradient"))};
}

SmallVector<Value> NarrowOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {gather(builder, getLoc(), cotangentType(getValue().getType()), cotangents[0],
                 getAxisAttr(), getDimAttr(), getBlocksAttr(), builder.getStringAttr("gradient"))};
}

//===----------------------------------------------------------------------------------------------===//
// Algebra
//===----------------------------------------------------------------------------------------------===//

template <typename A, typename B> static bool sameCut(A a, B b) {
  return a.getAxisAttr() == b.getAxisAttr() && a.getDim() == b.getDim() &&
         a.getBlocks() == b.getBlocks();
}

/// f of what was gathered for it alone: a gather whose result is replicated.
LogicalResult FOp::canonicalize(FOp f, PatternRewriter &rewriter) {
  auto inner = f.getValue().getDefiningOp<AllGatherOp>();
  if (!inner || inner.getAxisAttr() != f.getAxisAttr() || !inner->hasOneUse())
    return failure();
  rewriter.replaceOp(f, gather(rewriter, inner.getLoc(), f.getResult().getType(), inner.getValue(),
                               inner.getAxisAttr(), inner.getDimAttr(), inner.getBlocksAttr(),
                               inner.getReasonAttr()));
  rewriter.eraseOp(inner);
  return success();
}

/// A gather of what every rank cut out of the whole: the whole.
LogicalResult AllGatherOp::canonicalize(AllGatherOp op, PatternRewriter &rewriter) {
  auto narrow = op.getValue().getDefiningOp<NarrowOp>();
  if (!narrow || !sameCut(op, narrow))
    return failure();
  Value whole = narrow.getValue();
  if (whole.getType() == op.getResult().getType()) {
    rewriter.replaceOp(op, whole);
    return success();
  }
  if (Layout::of(op.getResult().getType()).kind(op.getAxisAttr()) != Kind::Replicated ||
      Layout::of(whole.getType()).kind(op.getAxisAttr()) != Kind::Invariant)
    return failure();
  rewriter.replaceOpWithNewOp<FOp>(op, op.getResult().getType(), whole, op.getAxisAttr());
  return success();
}

/// Of a sum over ranks of which only pieces are used: a reduce-scatter. Of what was gathered: the
/// piece that was there.
LogicalResult NarrowOp::canonicalize(NarrowOp op, PatternRewriter &rewriter) {
  Operation *definer = op.getValue().getDefiningOp();
  if (auto gathered = dyn_cast_or_null<AllGatherOp>(definer))
    if (sameCut(op, gathered) && gathered.getValue().getType() == op.getResult().getType()) {
      rewriter.replaceOp(op, gathered.getValue());
      return success();
    }
  Value partial;
  StringAttr reason = op.getReasonAttr();
  if (auto g = dyn_cast_or_null<GOp>(definer); g && g.getAxisAttr() == op.getAxisAttr())
    partial = g.getValue();
  if (auto sum = dyn_cast_or_null<AllReduceOp>(definer);
      sum && sum.getAxisAttr() == op.getAxisAttr() && sum.getValues().size() == 1) {
    partial = sum.getValues()[0];
    reason = sum.getReasonAttr();
  }
  if (!partial || !definer->hasOneUse())
    return failure();
  rewriter.replaceOp(
      op, ReduceScatterOp::create(rewriter, definer->getLoc(), op.getResult().getType(), partial,
                                  op.getAxisAttr(), op.getDimAttr(), op.getBlocksAttr(), reason));
  rewriter.eraseOp(definer);
  return success();
}
