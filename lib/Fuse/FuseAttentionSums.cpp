//===- FuseAttentionSums.cpp - attention's gradient sums its cotangents' rows -----------------===//
//
// A bias of a projection to q, k or v has the sums of their cotangents' rows, of a row for each
// position, as its gradient. Between the cotangents and a sum are reshapes and concatenations of what
// the positions have: the same ones, of the sums that the gradient op computes, replace it.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Fuse/Matmuls.h"
#include "partita/Fuse/Passes.h"
#include "llvm/ADT/Sequence.h"

namespace partita {
#define GEN_PASS_DEF_FUSEATTENTIONSUMSPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Returns how many of the first dimensions number the positions; 0 if they are numbered otherwise.
int64_t positionDims(Value value, int64_t positions) {
  int64_t product = 1;
  for (auto [i, size] : llvm::enumerate(shapeOf(value)))
    if (product *= size; product == positions)
      return static_cast<int64_t>(i) + 1;
  return 0;
}

/// Cotangents of one attention, reshaped and concatenated.
class Cotangents {
public:
  tx::AttentionGradOp grad; ///< null if the value is something else

  explicit Cotangents(Value value) {
    if (!visit(value))
      grad = {};
  }
  int64_t dims(Value value) const { return positionDims(value, positions); }
  RankedTensorType sumsType(Value value) const {
    return reducedType(cast<RankedTensorType>(value.getType()),
                       llvm::to_vector(llvm::seq<int64_t>(dims(value))), par::Kind::Partial);
  }

  /// Builds the sums of the value's rows from those of the gradient op.
  Value sums(OpBuilder &builder, Value value, tx::AttentionGradOp with) const {
    if (value.getDefiningOp() == grad)
      return with.getRowSums()[cast<OpResult>(value).getResultNumber()];
    Operation *op = value.getDefiningOp();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(sums(builder, operand, with));
    RankedTensorType type = sumsType(value);
    if (auto concat = dyn_cast<tx::ConcatOp>(op))
      return tx::ConcatOp::create(builder, op->getLoc(), type, operands,
                                  concat.getDim() - dims(value));
    return operands[0].getType() == type
               ? operands[0]
               : tx::ReshapeOp::create(builder, op->getLoc(), type, operands[0]).getResult();
  }

private:
  int64_t positions = 0; ///< a batch's

  bool visit(Value value) {
    Operation *op = value.getDefiningOp();
    if (auto found = dyn_cast_or_null<tx::AttentionGradOp>(op)) {
      int64_t count = shapeOf(value).size() == 4 ? shapeOf(value)[0] * shapeOf(value)[1] : 0;
      if (cast<OpResult>(value).getResultNumber() > 2 ||
          (grad && (grad != found || positions != count)))
        return false;
      grad = found;
      positions = count;
      return true;
    }
    auto concat = dyn_cast_or_null<tx::ConcatOp>(op);
    return (concat || isa_and_nonnull<tx::ReshapeOp>(op)) &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return visit(operand); }) &&
           dims(value) > 0 && (!concat || static_cast<int64_t>(concat.getDim()) >= dims(value));
  }
};

bool fuse(tx::ReduceSumOp sums) {
  Cotangents rows(sums.getX());
  tx::AttentionGradOp grad = rows.grad;
  if (!grad || grad.getRing() || grad->getBlock() != sums->getBlock() || isAddedWider(sums) ||
      sums.getDims() != ArrayRef(llvm::to_vector(llvm::seq<int64_t>(rows.dims(sums.getX())))) ||
      sums.getType() != rows.sumsType(sums.getX()))
    return false;
  if (!grad.getSums()) {
    tx::AttentionGradOp with = grad.withSums();
    for (auto [sum, result] : llvm::zip(with.getRowSums(), grad.getResults()))
      if (sum.getType() !=
          reducedType(cast<RankedTensorType>(result.getType()), {0, 1}, par::Kind::Partial)) {
        with.erase();
        return false;
      }
    grad->replaceAllUsesWith(with->getResults().take_front(grad->getNumResults()));
    grad.erase();
    rows.grad = grad = with;
  }
  OpBuilder builder(sums);
  sums.getResult().replaceAllUsesWith(rows.sums(builder, sums.getX(), grad));
  sums.erase();
  return true;
}

struct FuseAttentionSums : partita::impl::FuseAttentionSumsPassBase<FuseAttentionSums> {
  void runOnOperation() override {
    SmallVector<tx::ReduceSumOp> sums;
    getOperation().walk([&](tx::ReduceSumOp op) { sums.push_back(op); });
    for (tx::ReduceSumOp op : sums)
      fused += fuse(op);
  }
};

} // namespace
