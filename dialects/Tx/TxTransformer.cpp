//===- TxTransformer.cpp - see TxTransformer.td -----------------------------------------------===//

#include "dialects/Interfaces/Scalar.h"
#include "dialects/Tx/GradientBuilder.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

#define GET_OP_CLASSES
#include "dialects/Tx/TxTransformer.cpp.inc"

/// Checks what the rule does not: the type of the first keys.
template <typename Op> static LogicalResult verifyFirstKeys(Op op) {
  if (Value first = op.getFirstKeys();
      first && !cast<RankedTensorType>(first.getType()).getElementType().isInteger(32))
    return op.emitOpError() << "begins at keys of type " << first.getType()
                            << ", expected 32-bit integers";
  return success();
}

LogicalResult AttentionGradOp::verify() { return verifyFirstKeys(*this); }

LogicalResult DocumentStartsOp::verify() {
  auto ids = getIds().getType();
  if (ids.getRank() == 0 ||
      !(ids.getElementType().isInteger(32) || ids.getElementType().isInteger(64)))
    return emitOpError() << "wants ids of 32 or 64 bits along a sequence, not " << ids;
  return success();
}

LogicalResult AttentionOp::verify() {
  int64_t heads = getQ().getType().getDimSize(2), keyHeads = getK().getType().getDimSize(2);
  if (keyHeads == 0 || heads % keyHeads != 0)
    return emitOpError() << "has " << heads << " query heads for " << keyHeads
                         << " key heads, expected a multiple";
  if (getWindow() && (*getWindow() < 1 || !getCausal()))
    return emitOpError() << "has a window of " << *getWindow()
                         << ": a window is at least 1 and needs 'causal'";
  return verifyFirstKeys(*this);
}

LogicalResult LogSumExpOp::verify() {
  ArrayRef<int64_t> x = getX().getType().getShape(), parts = getType().getShape();
  if (x.empty() || x.size() != parts.size() || parts.back() < 1)
    return emitOpError() << "wants the parts of the last dimension of " << getX().getType()
                         << " in the last of " << getType();
  int64_t part = static_cast<int64_t>(llvm::divideCeil(x.back(), parts.back()));
  if (part * (parts.back() - 1) >= std::max<int64_t>(x.back(), 1))
    return emitOpError() << "has no element in the last of " << parts.back() << " parts of "
                         << x.back();
  return success();
}

/// Checks that the rows of `type` consist of pairs.
static LogicalResult verifyPairs(Operation *op, RankedTensorType type) {
  if (type.getRank() == 0 || type.getShape().back() % 2 != 0)
    return op->emitOpError() << "turns pairs of the last dimension, which " << type << " has not";
  return success();
}

LogicalResult RotateHalfOp::verify() { return verifyPairs(*this, getX().getType()); }

/// Checks that angles are not rounded to 16 bits, which no kernel reads.
LogicalResult RotaryOp::verify() {
  Type element = getX().getType().getElementType();
  Type angle = element.isF64() ? element : Float32Type::get(getContext());
  for (Value angles : {getCos(), getSin()})
    if (getElementTypeOrSelf(angles.getType()) != angle)
      return emitOpError() << "turns elements of type " << element << " by angles of type " << angle
                           << ", not " << getElementTypeOrSelf(angles.getType());
  return verifyPairs(*this, getX().getType());
}

LogicalResult DropoutOp::verify() {
  double ratio = getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio <= 1))
    return emitOpError() << "has a ratio of " << ratio << ", expected one between 0 and 1";
  if (!getKey() != !getMicro())
    return emitOpError() << "needs both a key and a micro-batch, or neither";
  if (getFirst() && (!getFullShape() ||
                     static_cast<int64_t>(getFullShape()->size()) != getX().getType().getRank()))
    return emitOpError() << "needs the full shape of " << getX().getType()
                         << " where it is a shard";
  for (const auto &split : par::Layout::of(getX().getType()).splits)
    for (const par::AxisSplit &part : split)
      if (part.blocks != 1)
        return emitOpError() << "numbers the elements of one shard, " << getX().getType()
                             << " is several, one in each block; choose a mesh without "
                             << part.axis;
  return success();
}

/// Computes the numbers of a shard's elements from the first one's and the full shape.
void DropoutOp::localize() {
  par::Layout layout = par::Layout::of(getX().getType()), numbers;
  for (auto &split : layout.splits)
    if (!split.empty()) {
      int64_t shards = 1;
      for (const par::AxisSplit &part : split)
        shards *= par::MeshAttr::of(*this).sizeOf(part.axis);
      numbers.shape.push_back(shards);
      numbers.splits.push_back(split);
    }
  if (!getKey() || numbers.shape.empty())
    return;
  OpBuilder builder(*this);
  auto type = RankedTensorType::get(SmallVector<int64_t>(numbers.shape.size(), 1),
                                    builder.getI64Type(), numbers.encoding(getContext()));
  getFirstMutable().assign(
      par::FirstElementOp::create(builder, getLoc(), type, TypeAttr::get(getX().getType())));
  setFullShapeAttr(builder.getDenseI64ArrayAttr(layout.shape));
}
