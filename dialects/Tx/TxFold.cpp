//===- TxFold.cpp - folds and canonical forms -------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

namespace {

/// Returns true if every element of the constant `attribute` equals `value`.
bool isSplat(Attribute attribute, double value) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!dense || !dense.isSplat())
    return false;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().convertToDouble() == value;
  return dense.getElementType().isIntOrIndex() &&
         dense.getSplatValue<APInt>().getSExtValue() == static_cast<int64_t>(value);
}

/// Returns a splat of `type`'s shape with the value of the splat `attribute`; null if it is none.
Attribute resplat(Attribute attribute, RankedTensorType type) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!dense || !dense.isSplat() || dense.getElementType() != type.getElementType())
    return {};
  auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
  return DenseElementsAttr::get(plain, dense.getSplatValue<Attribute>());
}

} // namespace

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getB(), 0) && getA().getType() == getType())
    return getA();
  if (isSplat(adaptor.getA(), 0) && getB().getType() == getType())
    return getB();
  return {};
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getB(), 1) && getA().getType() == getType())
    return getA();
  if (isSplat(adaptor.getA(), 1) && getB().getType() == getType())
    return getB();
  return {};
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getB(), 1) && getA().getType() == getType())
    return getA();
  return {};
}

/// Widening a float and casting it back gives the same float.
OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  auto inner = getX().getDefiningOp<CastOp>();
  if (!inner || inner.getX().getType() != getType())
    return {};
  auto narrow = dyn_cast<FloatType>(getType().getElementType());
  auto wide = dyn_cast<FloatType>(inner.getType().getElementType());
  if (narrow && wide && narrow.getWidth() < wide.getWidth() && wide.getWidth() >= 32)
    return inner.getX();
  return {};
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType())
    return getX();
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getX()))
    return dense.reshape(RankedTensorType::get(getType().getShape(), getType().getElementType()));
  return {};
}

/// Returns the gather of `x` that `second`, a gather of the reshaped x, repeats; null if there is none.
static par::AllGatherOp sameGather(Value x, par::AllGatherOp second) {
  StringAttr axis = second.getAxisAttr();
  for (Operation *user : x.getUsers()) {
    auto gather = dyn_cast<par::AllGatherOp>(user);
    if (gather && gather->getBlock() == second->getBlock() && gather.getAxisAttr() == axis &&
        gather.getAgain() == second.getAgain() &&
        par::Layout::of(gather.getType()).kind(axis) ==
            par::Layout::of(second.getType()).kind(axis))
      return gather;
  }
  return {};
}

/// gather(x), gather(reshape(x)) = y, reshape(y) where y = gather(x): ranks communicate once.
static LogicalResult gatherOnce(ReshapeOp op, PatternRewriter &rewriter) {
  for (Operation *user : op->getUsers()) {
    auto second = dyn_cast<par::AllGatherOp>(user);
    par::AllGatherOp gather = second ? sameGather(op.getX(), second) : par::AllGatherOp();
    if (!gather)
      continue;
    std::string error;
    par::Layout full = par::Layout::of(second.getType()), placed(full.shape);
    par::RuleProblem problem;
    if (!par::placeResults(*par::ruleOf(op, error), par::Layout::of(gather.getType()), false,
                           placed, problem) ||
        !(placed == full))
      continue;
    if (!gather->isBeforeInBlock(second))
      rewriter.moveOpBefore(gather, second);
    gather->setLoc(rewriter.getFusedLoc({gather.getLoc(), second.getLoc()})); // both reasons
    rewriter.setInsertionPoint(second);
    Value reshaped = ReshapeOp::create(rewriter, op.getLoc(), second.getType(), gather.getResult());
    rewriter.replaceOp(second, reshaped);
    return success();
  }
  return failure();
}

/// reshape(reshape(x)) = reshape(x), if the outer rule still allows the splits.
LogicalResult ReshapeOp::canonicalize(ReshapeOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<ReshapeOp>();
  if (!inner || cast<RankedTensorType>(inner.getX().getType()).getEncoding() ||
      op.getType().getEncoding())
    return gatherOnce(op, rewriter);
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getX());
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getType().getRank())) &&
      getX().getType() == getType())
    return getX();
  return resplat(adaptor.getX(), getType());
}

/// transpose(transpose(x)) = transpose(x)
LogicalResult TransposeOp::canonicalize(TransposeOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<TransposeOp>();
  if (!inner)
    return failure();
  SmallVector<int64_t> permutation;
  for (int64_t p : op.getPermutation())
    permutation.push_back(inner.getPermutation()[p]);
  rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getX(), permutation);
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType())
    return getX();
  return resplat(adaptor.getX(), getType());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType() && llvm::all_of(getStrides(), [](int64_t s) { return s == 1; }))
    return getX();
  return resplat(adaptor.getX(), getType());
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getInputs().size() == 1 && getInputs()[0].getType() == getType())
    return getInputs()[0];
  return {};
}

OpFoldResult ReduceSumOp::fold(FoldAdaptor) {
  if (getDims().empty() && getX().getType() == getType())
    return getX();
  return {};
}

/// x @ transpose(w) = matmul_nt(x, w), and back: the tied head reads the embedding table in place.
template <typename From, typename To>
static LogicalResult absorbTranspose(From op, PatternRewriter &rewriter) {
  auto transpose = op.getB().template getDefiningOp<TransposeOp>();
  if (!transpose || !llvm::equal(transpose.getPermutation(), ArrayRef<int64_t>{1, 0}))
    return failure();
  rewriter.replaceOpWithNewOp<To>(op, TypeRange{op.getType()},
                                  ValueRange{op.getA(), transpose.getX()});
  return success();
}

LogicalResult MatMulOp::canonicalize(MatMulOp op, PatternRewriter &rewriter) {
  return absorbTranspose<MatMulOp, MatMulNTOp>(op, rewriter);
}

LogicalResult MatMulNTOp::canonicalize(MatMulNTOp op, PatternRewriter &rewriter) {
  return absorbTranspose<MatMulNTOp, MatMulOp>(op, rewriter);
}
