//===- Reductions.cpp - ReduceSum and its family ----------------------------------------------===//

#include "lib/Import/File/ExportRecord.h"
#include "lib/Import/Folding/Bounds.h"
#include "lib/Import/Operators/Math.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// Since which opset the axes are an input: 13 for ReduceSum, 18 for the others.
LogicalResult reducedAxes(Node &node, int64_t axesAreInput, Shape &axes) {
  int64_t rank = node.input(0)->shape.size(), noop = 0;
  if (node.version >= axesAreInput) {
    if (failed(node.attribute("noop_with_empty_axes", noop)) ||
        (node.input(1) && failed(node.knownInts(1, "the list of axes", axes))))
      return failure();
  } else if (failed(node.attribute("axes", axes))) {
    return failure();
  }
  if (axes.empty() && !noop)
    axes.assign(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  for (int64_t &axis : axes)
    if (failed(node.normalizeAxis(axis, rank)))
      return failure();
  llvm::sort(axes);
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return node.error() << "reduces an axis twice";
  return success();
}

/// A reduction's axes, and the shape of its result.
struct Reduced {
  Shape axes, shape;
};

LogicalResult parse(Node &node, int64_t axesAreInput, Reduced &reduced) {
  int64_t keepDims = 1;
  if (failed(node.arity(1, 2)) || failed(node.attribute("keepdims", keepDims)) ||
      failed(reducedAxes(node, axesAreInput, reduced.axes)))
    return failure();
  for (auto [i, dim] : llvm::enumerate(node.input(0)->shape)) {
    bool isReduced = llvm::is_contained(reduced.axes, static_cast<int64_t>(i));
    if (!isReduced || keepDims)
      reduced.shape.push_back(isReduced ? 1 : dim);
  }
  return success();
}

using Kind = Folder::Reduction;

/// A sum of integers as sums of their digits in float32, which ranks that split the samples can add up: each is
/// exact, as it is at most 2^24. A count, `(labels != -100).sum()`, has one digit. Null for so many elements that
/// digits would be too short.
Value sumOfDigits(Math &m, Value x, llvm::ArrayRef<int64_t> axes) {
  constexpr uint64_t largest = uint64_t(1) << 24; // up to which all integers are float32's
  constexpr int64_t leastBits = 4;                // of one digit among several
  Type type = getElementTypeOrSelf(x.getType());
  uint64_t counted = 1;
  for (int64_t axis : axes)
    counted *= shapeOf(x)[axis];
  int64_t bits = llvm::Log2_64(largest / counted + 1);
  if (bits < leastBits && !isWithin(x, int64_t(1) << bits))
    return {};
  Value total;
  for (int64_t low = 0, width = type.getIntOrFloatBitWidth(); low < width; low += bits) {
    bool isLast = low + bits >= width || isWithin(x, int64_t(1) << bits);
    auto base = static_cast<double>(int64_t(1) << bits);
    Value digit = isLast ? x : m.apply<tx::RemainderOp>(x, m.like(x, base));
    Value sum = m.cast(m.sum(m.cast(digit, Float32Type::get(x.getContext())), axes), type);
    sum = m.mul(sum, static_cast<double>(int64_t(1) << low));
    total = total ? m.add(total, sum) : sum;
    if (isLast)
      break;
    x = m.apply<tx::QuotientOp>(x, m.like(x, base));
  }
  return total;
}

/// Other reductions of integers and bools, and ReduceProd, have no kernel: they are reduced by halving.
Value reduceValue(Math &m, Value x, Kind kind, llvm::ArrayRef<int64_t> axes, bool isReal) {
  switch (kind) {
  case Kind::sum:
    if (isReal)
      return m.sum(x, axes);
    if (Value sum = sumOfDigits(m, x, axes))
      return sum;
    return m.halve<tx::AddOp>(x, axes);
  case Kind::mean:
    return m.mean(x, axes);
  case Kind::max:
    return isReal ? m.max(x, axes) : m.halve<tx::MaxOp>(x, axes);
  case Kind::min:
    return isReal ? m.min(x, axes) : m.halve<tx::MinOp>(x, axes);
  case Kind::prod:
    return m.halve<tx::MulOp>(x, axes);
  }
  return {};
}

/// Where along `axis` the i1 `here` is true: the first place, or the last. Some place where it is
/// nowhere (among NaNs), so that what is looked up there exists.
Value place(Math &m, Value here, int64_t axis, bool last) {
  int64_t size = shapeOf(here)[axis];
  Value at = m.iota(m.i64(), shapeOf(here).size(), axis, size);
  Value found = m.select(here, at, m.like(at, static_cast<double>(last ? 0 : size - 1)));
  return last ? m.halve<tx::MaxOp>(found, axis) : m.halve<tx::MinOp>(found, axis);
}

/// Where x is the largest or smallest, which may be NaN.
Value whereIs(Math &m, Value x, Value best) {
  Value here = m.apply<tx::EqualOp>(x, best);
  bool isReal = isa<FloatType>(getElementTypeOrSelf(x.getType()));
  return isReal ? m.apply<tx::OrOp>(here, m.apply<tx::IsNanOp>(x)) : here;
}

/// The element at the position `found` along `axis`, which stays with size 1. It alone gets the
/// gradient.
Value pick(Math &m, Value x, Value found, int64_t axis) {
  Value at = m.iota(m.i64(), shapeOf(x).size(), axis, shapeOf(x)[axis]);
  return m.sum(m.select(m.apply<tx::EqualOp>(at, found), x, m.like(x, 0)), axis);
}

/// The first of the largest or smallest, which alone gets the gradient.
Value firstOf(Math &m, Value x, Kind kind, int64_t axis) {
  Value best = reduceValue(m, x, kind, axis, /*isReal=*/true);
  return pick(m, x, place(m, whereIs(m, x, best), axis, /*last=*/false), axis);
}

/// PyTorch's max and min along a dimension; amax, and the maximum of a whole tensor, send the
/// gradient to all equal elements alike.
bool isOfFirst(Node &node) {
  std::optional<ProgramCall> call = callOf(node.proto);
  return call && (call->operation == "max" || call->operation == "min") &&
         !call->textAt(1).empty(); // the dimension
}

template <Kind kind, int64_t axesAreInput> LogicalResult reduce(Node &node) {
  Reduced reduced;
  if (failed(parse(node, axesAreInput, reduced)))
    return failure();
  Tensor *x = node.input(0);
  if (reduced.axes.empty())
    return node.set(0, x);
  if (x->host)
    if (MaybeHost host = node.folder().reduce(*x->host, reduced.axes, kind))
      return node.set(0, *host->viewAs(reduced.shape));
  bool isBool = x->type == DType::boolean;
  if (isBool ? kind != Kind::max && kind != Kind::min : !isFloat(x->type) && kind == Kind::mean)
    return node.error() << "of " << typeText(*x)
                        << " that depends on the model's input is not supported";
  if (failed(node.emittable(x)))
    return failure();
  Math m(node);
  Value value = node.value(x);
  if (isBool && kind == Kind::max)
    value = m.halve<tx::OrOp>(value, reduced.axes);
  else if (isBool)
    value = m.halve<tx::AndOp>(value, reduced.axes);
  else if (isFloat(x->type) && reduced.axes.size() == 1 && isOfFirst(node))
    value = firstOf(m, value, kind, reduced.axes[0]);
  else
    value = reduceValue(m, value, kind, reduced.axes, isFloat(x->type));
  return node.set(0, node.reshape(value, reduced.shape));
}

/// A reduction that is a formula of others.
using Formula = Value (*)(Math &m, Value x, llvm::ArrayRef<int64_t> axes);

/// `logOfNothing`: is the formula of no elements log 0, not 0?
template <Formula formula, bool logOfNothing> LogicalResult reduceBy(Node &node) {
  Reduced reduced;
  if (failed(parse(node, 18, reduced)))
    return failure();
  Tensor *x = node.input(0);
  if (!isFloat(x->type))
    return node.error() << "of " << typeText(*x) << " is not supported, only of floats";
  if (*elementCount(x->shape) == 0) {
    double nothing = logOfNothing ? -std::numeric_limits<double>::infinity() : 0;
    return node.set(0, HostTensor::scalar(x->type, nothing).broadcast(reduced.shape));
  }
  if (failed(node.emittable(x)))
    return failure();
  Math m(node);
  return node.set(0, node.reshape(formula(m, node.value(x), reduced.axes), reduced.shape));
}

Value sumOfSquares(Math &m, Value x, llvm::ArrayRef<int64_t> axes) {
  return m.sum(m.mul(x, x), axes);
}
Value sumOfSizes(Math &m, Value x, llvm::ArrayRef<int64_t> axes) {
  return m.sum(m.apply<tx::AbsOp>(x), axes);
}
Value norm(Math &m, Value x, llvm::ArrayRef<int64_t> axes) {
  return m.apply<tx::SqrtOp>(sumOfSquares(m, x, axes));
}
Value logOfSum(Math &m, Value x, llvm::ArrayRef<int64_t> axes) {
  return m.apply<tx::LogOp>(m.sum(x, axes));
}
Value logOfSumOfPowers(Math &m, Value x, llvm::ArrayRef<int64_t> axes) {
  return m.logSumExp(x, axes);
}

/// The index of the largest (or smallest): of the positions that hold it the first, or the last.
template <bool largest> LogicalResult position(Node &node) {
  int64_t axis = 0, keepDims = 1, last = 0;
  if (failed(node.arity(1, 1)) || failed(node.attribute("axis", axis)) ||
      failed(node.attribute("keepdims", keepDims)) ||
      (node.version >= 12 && failed(node.attribute("select_last_index", last))) ||
      failed(node.normalizeAxis(axis, node.input(0)->shape.size())))
    return failure();
  Tensor *x = node.input(0);
  if (x->type == DType::boolean)
    return node.error() << "of " << typeText(*x) << " is not supported";
  if (failed(node.emittable(x)))
    return failure();
  Math m(node);
  Value value = node.value(x);
  Value best = reduceValue(m, value, largest ? Kind::max : Kind::min, axis, isFloat(x->type));
  Value found = place(m, m.apply<tx::EqualOp>(value, best), axis, last);
  Shape shape(x->shape);
  if (keepDims)
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + axis);
  return node.set(0, node.reshape(found, shape));
}

/// The k largest (or smallest), best first, and where they stand: one after the other, as the few
/// experts of a token are chosen.
LogicalResult topK(Node &node) {
  constexpr int64_t most = 64;
  int64_t axis = -1, k = 0, largest = 1, sorted = 1;
  if (failed(node.arity(1, 2)) || failed(node.attribute("axis", axis)) ||
      (node.version >= 11 &&
       (failed(node.attribute("largest", largest)) || failed(node.attribute("sorted", sorted)))) ||
      failed(node.version >= 10 ? node.knownInt(1, "how many are wanted", k)
                                : node.attribute("k", k)) ||
      failed(node.normalizeAxis(axis, node.input(0)->shape.size())))
    return failure();
  Tensor *x = node.input(0);
  if (k < 1 || k > std::min(x->shape[axis], most))
    return node.error() << "wants " << k << " of " << x->shape[axis]
                        << " elements, expected at least one of them and at most " << most;
  if (x->type == DType::boolean)
    return node.error() << "of " << typeText(*x) << " is not supported";
  if (failed(node.emittable(x)))
    return failure();
  Math m(node);
  Kind best = largest ? Kind::max : Kind::min, worst = largest ? Kind::min : Kind::max;
  bool isReal = isFloat(x->type);
  Value value = node.value(x), gone = reduceValue(m, value, worst, axis, isReal);
  Value left = m.constant(node.builder().getI1Type(), x->shape, 1);
  Value at = m.iota(m.i64(), x->shape.size(), axis, x->shape[axis]);
  SmallVector<Value> values, places;
  for (int64_t i = 0; i < k; ++i) {
    Value rest = i == 0 ? value : m.select(left, value, gone);
    Value found = reduceValue(m, rest, best, axis, isReal);
    Value here = m.apply<tx::AndOp>(whereIs(m, rest, found), left);
    places.push_back(place(m, here, axis, /*last=*/false));
    values.push_back(isReal ? pick(m, value, places.back(), axis) : found);
    left =
        m.apply<tx::AndOp>(left, node.emit<tx::NotOp>({m.apply<tx::EqualOp>(at, places.back())}));
  }
  if (failed(node.set(0, m.concat(values, axis))))
    return failure();
  return node.set(1, m.concat(places, axis));
}

/// Of the whole feature maps: all dimensions but the first two.
template <typename Op> LogicalResult globalPool(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  Tensor *x = node.input(0);
  if (!isFloat(x->type) || x->shape.size() < 3)
    return node.error() << "of " << typeText(*x)
                        << ", expected floats of at least three dimensions";
  if (failed(node.emittable(x)))
    return failure();
  Shape axes(llvm::to_vector(llvm::seq<int64_t>(2, x->shape.size())));
  return node.set(0, Math(node).reduce<Op>(node.value(x), axes));
}

const OpRow reductionRows[] = {
    {"ReduceSum", "", 1, anyLater, reduce<Kind::sum, 13>},
    {"ReduceMean", "", 1, anyLater, reduce<Kind::mean, 18>},
    {"ReduceMax", "", 1, anyLater, reduce<Kind::max, 18>},
    {"ReduceMin", "", 1, anyLater, reduce<Kind::min, 18>},
    {"ReduceProd", "", 1, anyLater, reduce<Kind::prod, 18>},
    {"ReduceL1", "", 1, anyLater, reduceBy<sumOfSizes, false>},
    {"ReduceL2", "", 1, anyLater, reduceBy<norm, false>},
    {"ReduceSumSquare", "", 1, anyLater, reduceBy<sumOfSquares, false>},
    {"ReduceLogSum", "", 1, anyLater, reduceBy<logOfSum, true>},
    {"ReduceLogSumExp", "", 1, anyLater, reduceBy<logOfSumOfPowers, true>},
    {"ArgMax", "", 1, anyLater, position<true>, OpEffect::Finds},
    {"ArgMin", "", 1, anyLater, position<false>, OpEffect::Finds},
    {"TopK", "", 1, anyLater, topK},
    {"GlobalAveragePool", "", 1, anyLater, globalPool<tx::ReduceMeanOp>},
    {"GlobalMaxPool", "", 1, anyLater, globalPool<tx::ReduceMaxOp>},
};

} // namespace

llvm::ArrayRef<OpRow> reductionOps() { return reductionRows; }

} // namespace partita::importer
