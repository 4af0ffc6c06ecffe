//===- Math.cpp -------------------------------------------------------------------------------===//

#include "lib/Import/Operators/Math.h"

using namespace mlir;

namespace partita::importer {

Shape Math::common(llvm::ArrayRef<Value> values) {
  Shape shape;
  for (Value value : values)
    if (shapeOf(value).size() > shape.size())
      shape.insert(shape.begin(), shapeOf(value).size() - shape.size(), 1);
  for (Value value : values) {
    size_t shift = shape.size() - shapeOf(value).size();
    for (auto [i, dim] : llvm::enumerate(shapeOf(value)))
      if (dim != 1)
        shape[shift + i] = dim;
  }
  return shape;
}

Value Math::select(Value c, Value a, Value b) {
  Shape shape = common({c, a, b});
  return node.emit<tx::SelectOp>(
      {node.broadcast(c, shape), node.broadcast(a, shape), node.broadcast(b, shape)});
}

Value Math::like(Value x, double value) {
  return tx::createSplat(node.builder(), node.loc, x.getType(), value);
}

Value Math::constant(Type element, llvm::ArrayRef<int64_t> shape, double value) {
  return tx::createSplat(node.builder(), node.loc, RankedTensorType::get(shape, element), value);
}

Value Math::iota(Type element, int64_t rank, int64_t axis, int64_t size, double start,
                 double step) {
  Shape shape(rank, 1);
  shape[axis] = size;
  OpBuilder &b = node.builder();
  return node.reshape(tx::IotaOp::create(b, node.loc, RankedTensorType::get({size}, element),
                                         b.getF64FloatAttr(start), b.getF64FloatAttr(step)),
                      shape);
}

Value Math::cast(Value x, Type element) {
  if (getElementTypeOrSelf(x.getType()) == element)
    return x;
  return tx::CastOp::create(node.builder(), node.loc, RankedTensorType::get(shapeOf(x), element),
                            x);
}

Value Math::negate(Value x) {
  if (isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return apply<tx::NegOp>(x);
  return sub(like(x, 0), x);
}

Value Math::min(Value x, llvm::ArrayRef<int64_t> axes) { return negate(max(negate(x), axes)); }

Value Math::logSumExp(Value x, llvm::ArrayRef<int64_t> axes) {
  // Where everything is -inf the largest must not be subtracted, nor where one is inf.
  Value largest = max(x, axes);
  Value infinite = apply<tx::EqualOp>(apply<tx::AbsOp>(largest),
                                      like(largest, std::numeric_limits<double>::infinity()));
  Value shift = select(infinite, like(largest, 0), largest);
  Value total = sum(apply<tx::ExpOp>(sub(x, shift)), axes);
  return add(apply<tx::LogOp>(total), shift);
}

static Shape movedToLast(int64_t rank, int64_t axis) {
  Shape permutation;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      permutation.push_back(i);
  permutation.push_back(axis);
  return permutation;
}

Value Math::axisToLast(Value x, int64_t axis) {
  return node.transpose(x, movedToLast(shapeOf(x).size(), axis));
}

Value Math::lastToAxis(Value x, int64_t axis) {
  Shape there = movedToLast(shapeOf(x).size(), axis), back(there.size());
  for (auto [i, from] : llvm::enumerate(there))
    back[from] = i;
  return node.transpose(x, back);
}

Value Math::slice(Value x, int64_t axis, int64_t offset, int64_t size, int64_t stride) {
  // One of the parts that a concatenation has just put together is there already.
  if (auto concat = x.getDefiningOp<tx::ConcatOp>();
      concat && static_cast<int64_t>(concat.getDim()) == axis && stride == 1) {
    int64_t at = 0;
    for (Value part : concat.getInputs()) {
      if (at == offset && shapeOf(part)[axis] == size)
        return part;
      at += shapeOf(part)[axis];
    }
  }
  Shape offsets(shapeOf(x).size(), 0), sizes(shapeOf(x)), strides(shapeOf(x).size(), 1);
  offsets[axis] = offset;
  sizes[axis] = size;
  strides[axis] = size == 1 ? 1 : stride;
  return node.slice(x, offsets, sizes, strides);
}

Value Math::concat(llvm::ArrayRef<Value> parts, int64_t axis) {
  if (parts.size() == 1)
    return parts[0];
  Shape shape(shapeOf(parts[0]));
  shape[axis] = 0;
  for (Value part : parts)
    shape[axis] += shapeOf(part)[axis];
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(parts[0].getType()));
  return tx::ConcatOp::create(node.builder(), node.loc, type, parts, axis);
}

Value Math::padZero(Value x, int64_t axis, int64_t before, int64_t after) {
  if (before == 0 && after == 0)
    return x;
  Shape shape(shapeOf(x)), offsets(shape.size(), 0), strides(shape.size(), 1);
  offsets[axis] = before;
  shape[axis] += before + after;
  return tx::PadOp::create(node.builder(), node.loc,
                           RankedTensorType::get(shape, getElementTypeOrSelf(x.getType())), x,
                           offsets, strides);
}

} // namespace partita::importer
