//===- TransposeFp8.cpp - 8-bit operands in the order that a GPU's matmuls read ---------------===//
//
// The matrix instructions of some GPUs take two rows of 8-bit operands and sum over their elements,
// so a matrix that is read by columns must be stored transposed. The kernel that quantizes it has its
// elements in registers: it stores the transpose, too, or the transpose alone. Of what the forward
// pass quantizes, the backward pass reads only one of both, so that no more is saved than before.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Par/Placement.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Tx/Tx.h"
#include "partita/Amp/Passes.h"

namespace partita {
#define GEN_PASS_DEF_TRANSPOSEFP8PASS
#include "partita/Amp/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns the type of the transpose of `x`, whose last dimension then comes first; null where ranks
/// have shards that are no matrices.
RankedTensorType columnsType(RankedTensorType x, Type element) {
  par::Layout layout = par::Layout::of(x);
  if (x.getRank() == 0 || !layout.flat.empty())
    return {};
  auto lastFirst = [](auto &dims) { std::rotate(dims.begin(), dims.end() - 1, dims.end()); };
  SmallVector<int64_t> shape(x.getShape());
  lastFirst(shape);
  lastFirst(layout.shape);
  lastFirst(layout.splits);
  return RankedTensorType::get(shape, element, layout.encoding(x.getContext()));
}

/// Returns the op whose rows the operand is, if it can make columns.
amp::QuantizeOp quantizeOf(Value operand) {
  auto quantize = operand.getDefiningOp<amp::QuantizeOp>();
  bool can = quantize && operand == quantize.getRows() &&
             columnsType(quantize.getX().getType(), quantize.getStored());
  return can ? quantize : amp::QuantizeOp();
}

struct TransposeFp8 : partita::impl::TransposeFp8PassBase<TransposeFp8> {
  void runOnOperation() override {
    if (!rt::Target::of(getOperation()).multipliesRowsIn8Bits())
      return;
    SmallVector<Operation *> matmuls;
    getOperation().walk([&](Operation *op) {
      if (isa<tx::ScaledMatMulOp, tx::ScaledMatMulTNOp>(op))
        matmuls.push_back(op);
    });
    for (Operation *op : matmuls)
      if (auto matmul = dyn_cast<tx::ScaledMatMulOp>(op))
        rewrite(matmul);
      else
        rewrite(cast<tx::ScaledMatMulTNOp>(op));
    SmallVector<amp::QuantizeOp> made;
    getOperation().walk([&](amp::QuantizeOp op) { made.push_back(op); });
    for (amp::QuantizeOp op : made)
      if (op.getColumns() && op.getRows() && op.getRows().use_empty())
        op.withResults(Type(), op.getColumns().getType(), Type());
  }

private:
  /// Returns the columns that `operand` has as rows.
  Value columnsOf(Value operand) {
    auto quantize = operand.getDefiningOp<amp::QuantizeOp>();
    if (quantize.getColumns())
      return quantize.getColumns();
    ++transposed;
    return quantize
        .withResults(operand.getType(),
                     columnsType(quantize.getX().getType(), quantize.getStored()), Type())
        .getColumns();
  }

  template <typename New, typename Old> void replace(Old old, Value a, Value b) {
    OpBuilder builder(old);
    auto made = New::create(builder, old.getLoc(), old.getType(), a, b, old.getScales(),
                            old.getNumberAAttr(), old.getNumberBAttr());
    made->setDiscardableAttrs(old->getDiscardableAttrDictionary());
    old.getResult().replaceAllUsesWith(made.getResult());
    old.erase();
  }

  void rewrite(tx::ScaledMatMulOp matmul) {
    if (quantizeOf(matmul.getB()))
      replace<tx::ScaledMatMulNTOp>(matmul, matmul.getA(), columnsOf(matmul.getB()));
  }
  void rewrite(tx::ScaledMatMulTNOp matmul) {
    if (!quantizeOf(matmul.getA()) || !quantizeOf(matmul.getB()))
      return;
    Value a = columnsOf(matmul.getA()), b = columnsOf(matmul.getB());
    replace<tx::ScaledMatMulColumnsOp>(matmul, a, b);
  }
};

} // namespace
