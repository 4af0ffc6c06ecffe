//===- Counting.cpp - Trilu, CumSum, OneHot, EyeLike ------------------------------------------===//
//
// Operators whose results depend on where an element stands.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Operators/Math.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// On a value: multiply-free, a select against a known triangle.
LogicalResult trilu(Node &node) {
  int64_t upper = 1, diagonal = 0;
  if (failed(node.arity(1, 2)) || failed(node.attribute("upper", upper)) ||
      (node.input(1) && failed(node.knownInt(1, "the diagonal", diagonal))))
    return failure();
  Tensor *x = node.input(0);
  if (x->shape.size() < 2)
    return node.error() << "of " << typeText(*x) << ", expected at least two dimensions";
  if (x->host)
    if (MaybeHost host = node.folder().trilu(*x->host, diagonal, upper))
      return node.set(0, *host);
  if (failed(node.emittable(x)))
    return failure();
  llvm::ArrayRef<int64_t> matrix = llvm::ArrayRef<int64_t>(x->shape).take_back(2);
  HostTensor ones = HostTensor::scalarInt(DType::boolean, 1).broadcast(matrix);
  Math m(node);
  auto triangle = [&]() -> Value {
    if (MaybeHost mask = node.folder().trilu(ones, diagonal, upper))
      return node.value(node.importer.create(*mask));
    Value row = m.iota(m.i64(), 2, 0, matrix[0], static_cast<double>(diagonal));
    Value column = m.iota(m.i64(), 2, 1, matrix[1]);
    return upper ? m.apply<tx::GreaterEqualOp>(column, row)
                 : m.apply<tx::GreaterEqualOp>(row, column);
  };
  Value keep = node.broadcast(triangle(), x->shape);
  Value zero = tx::createSplat(node.builder(), node.loc, node.value(x).getType(), 0);
  return node.set(0, node.emit<tx::SelectOp>({keep, node.value(x), zero}));
}

LogicalResult cumSum(Node &node) {
  int64_t exclusive = 0, reverse = 0, axis = 0;
  if (failed(node.arity(2, 2)) || failed(node.attribute("exclusive", exclusive)) ||
      failed(node.attribute("reverse", reverse)) || failed(node.knownInt(1, "the axis", axis)))
    return failure();
  Tensor *x = node.input(0);
  if (failed(node.normalizeAxis(axis, x->shape.size())))
    return failure();
  if (x->host)
    if (MaybeHost host = node.folder().cumSum(*x->host, axis, exclusive, reverse))
      return node.set(0, *host);
  if (x->type == DType::boolean)
    return node.error() << "of " << typeText(*x) << " is not supported";
  if (failed(node.emittable(x)))
    return failure();
  // Sums of 1, 2, 4, ... neighbours: as many additions as the length has bits, exact for integers.
  Math m(node);
  Value sum = node.value(x);
  int64_t length = x->shape[axis];
  auto shifted = [&](Value v, int64_t by) {
    Value kept = m.slice(v, axis, reverse ? by : 0, length - by);
    Shape gap(x->shape);
    gap[axis] = by;
    Value zeros = m.constant(getElementTypeOrSelf(v.getType()), gap, 0);
    return reverse ? m.concat({kept, zeros}, axis) : m.concat({zeros, kept}, axis);
  };
  for (int64_t step = 1; step < length; step *= 2)
    sum = m.add(sum, shifted(sum, step));
  if (exclusive)
    sum = length == 1 ? m.like(sum, 0) : shifted(sum, 1);
  return node.set(0, sum);
}

/// `on` where the class is the index, `off` elsewhere, along a new dimension.
LogicalResult oneHot(Node &node) {
  int64_t axis = -1;
  if (failed(node.arity(3, 3)) || failed(node.attribute("axis", axis)))
    return failure();
  Tensor *indices = node.input(0), *depth = node.input(1), *values = node.input(2);
  if (!depth->host)
    return node.notKnown("the number of classes");
  if (*elementCount(depth->shape) != 1 || values->shape != Shape{2} ||
      indices->type == DType::boolean)
    return node.error() << "of " << typeText(*indices) << " with " << typeText(*depth)
                        << " classes and values " << typeText(*values);
  int64_t classes = depth->host->onlyInt(), rank = indices->shape.size() + 1;
  if (failed(node.normalizeAxis(axis, rank)))
    return failure();
  Shape shape(indices->shape);
  shape.insert(shape.begin() + axis, classes);
  if (classes < 1 || !elementCount(shape))
    return node.error() << "has " << classes << " classes, which is not possible";
  if (failed(node.emittable({indices, values})))
    return failure();
  Math m(node);
  Shape apart(indices->shape);
  apart.insert(apart.begin() + axis, 1);
  Value index = node.reshape(m.cast(node.value(indices), m.i64()), apart);
  index = m.select(m.apply<tx::LessOp>(index, m.like(index, 0)),
                   m.add(index, static_cast<double>(classes)), index);
  Value hit = m.apply<tx::EqualOp>(index, m.iota(m.i64(), rank, axis, classes));
  auto value = [&](int64_t at) {
    return node.reshape(m.slice(node.value(values), 0, at, 1), llvm::ArrayRef<int64_t>());
  };
  return node.set(0, m.select(hit, value(1), value(0)));
}

/// One on the k-th diagonal.
LogicalResult eyeLike(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  int64_t type = static_cast<int64_t>(node.input(0)->type), k = 0;
  if (failed(node.attribute("dtype", type)) || failed(node.attribute("k", k)))
    return failure();
  std::optional<DType> known = dtypeFromOnnx(type);
  Type element = known ? mlirType(*known, node.importer.context()) : Type();
  llvm::ArrayRef<int64_t> shape(node.input(0)->shape);
  if (!element || shape.size() != 2 || *elementCount(shape) == 0 || k > 1 << 30 || k < -(1 << 30))
    return node.error() << "of " << typeText(*node.input(0)) << " as " << dtypeName(type)
                        << " with diagonal " << k << " is not supported";
  Math m(node);
  Value row = m.iota(m.i64(), 2, 0, shape[0], static_cast<double>(k));
  Value column = m.iota(m.i64(), 2, 1, shape[1]);
  return node.set(0, m.cast(m.apply<tx::EqualOp>(row, column), element));
}

const OpRow countingRows[] = {
    {"Trilu", "", 14, anyLater, trilu},
    {"CumSum", "", 11, anyLater, cumSum},
    {"OneHot", "", 9, anyLater, oneHot},
    {"EyeLike", "", 9, anyLater, eyeLike},
};

} // namespace

llvm::ArrayRef<OpRow> countingOps() { return countingRows; }

} // namespace partita::importer
