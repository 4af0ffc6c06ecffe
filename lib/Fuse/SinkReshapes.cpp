//===- SinkReshapes.cpp - moves elementwise ops before their operands' reshapes ---------------===//
//
// An elementwise op with an operand reshape(x), where x comes from a matmul or another elementwise
// op and has no other use, is computed in x's shape. Its other operands are reshaped (a reshape is
// undone, a row vector is broadcast again, a splat gets the new shape), and so is its result. Ops
// are visited in program order, so chains follow.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Fuse/Matmuls.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_SINKRESHAPESPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns true if shape and placement are the same; the element types may differ.
bool sameLayout(Type a, Type b) {
  auto x = cast<RankedTensorType>(a), y = cast<RankedTensorType>(b);
  return x.getShape() == y.getShape() && x.getEncoding() == y.getEncoding();
}

struct SinkReshapes : partita::impl::SinkReshapesPassBase<SinkReshapes> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (tx::isElementwise(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (tx::ReshapeOp reshape = reshapeToSink(op)) {
        rewrite(op, cast<RankedTensorType>(reshape.getX().getType()));
        ++sunk;
      }
  }

private:
  tx::ReshapeOp reshapeToSink(Operation *op);
  void rewrite(Operation *op, RankedTensorType shape);
};

/// Returns the operand's reshape that `op` should move before; null if there is none.
tx::ReshapeOp SinkReshapes::reshapeToSink(Operation *op) {
  Type type = op->getResult(0).getType();
  if (!llvm::all_of(op->getOperandTypes(), [&](Type operand) { return sameLayout(operand, type); }))
    return {};
  for (Value operand : op->getOperands()) {
    auto reshape = operand.getDefiningOp<tx::ReshapeOp>();
    if (!reshape || !reshape->hasOneUse() || !reshape.getX().hasOneUse())
      continue;
    Operation *source = reshape.getX().getDefiningOp();
    if (source && (isMatmul(source) || isa<tx::BatchMatMulOp>(source) || tx::isElementwise(source)))
      return reshape;
  }
  return {};
}

RankedTensorType withElement(RankedTensorType shape, Type like) {
  return RankedTensorType::get(shape.getShape(), getElementTypeOrSelf(like), shape.getEncoding());
}

/// Returns `value` in another shape of the same elements.
Value reshaped(OpBuilder &builder, Location loc, Value value, RankedTensorType shape) {
  RankedTensorType type = withElement(shape, value.getType());
  if (auto reshape = value.getDefiningOp<tx::ReshapeOp>();
      reshape && reshape.getX().getType() == type)
    return reshape.getX();
  auto constant = value.getDefiningOp<tx::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (dense && dense.isSplat()) {
    auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
    auto splat = DenseElementsAttr::get(plain, dense.getSplatValue<Attribute>());
    return tx::ConstantOp::create(builder, loc, type, cast<ElementsAttr>(Attribute(splat)));
  }
  if (auto broadcast = value.getDefiningOp<tx::BroadcastOp>()) {
    auto row = cast<RankedTensorType>(broadcast.getX().getType());
    if (row.getRank() == 1 && type.getRank() > 0 && row.getDimSize(0) == type.getShape().back())
      return tx::BroadcastOp::create(builder, loc, type, broadcast.getX());
  }
  return tx::ReshapeOp::create(builder, loc, type, value);
}

void SinkReshapes::rewrite(Operation *op, RankedTensorType shape) {
  OpBuilder builder(op);
  OperationState state(op->getLoc(), op->getName());
  for (Value operand : op->getOperands())
    state.addOperands(reshaped(builder, op->getLoc(), operand, shape));
  state.addAttributes(op->getAttrs());
  state.addTypes(withElement(shape, op->getResult(0).getType()));
  Value result = builder.create(state)->getResult(0);
  SmallVector<Value> old(op->getOperands());
  op->getResult(0).replaceAllUsesWith(
      tx::ReshapeOp::create(builder, op->getLoc(), op->getResult(0).getType(), result));
  op->erase();
  for (Value operand : old)
    if (Operation *definition = operand.getDefiningOp();
        definition && isOpTriviallyDead(definition))
      definition->erase();
}

} // namespace
