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

/// reshape(reshape(x)) = reshape(x), if the outer rule still allows the splits.
LogicalResult ReshapeOp::canonicalize(ReshapeOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<ReshapeOp>();
  if (!inner || cast<RankedTensorType>(inner.getX().getType()).getEncoding() ||
      op.getType().getEncoding())
    return failure();
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
