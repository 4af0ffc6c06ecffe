//===- Norm.cpp - LayerNormalization, Softmax -------------------------------------------------===//

#include "lib/Import/Operators/Norm.h"
#include "lib/Import/Operators/Math.h"

using namespace mlir;

namespace partita::importer {

namespace {

/// Calls `body` on x with dimension `axis` last, and puts the dimensions of its result back.
template <typename Body> Value alongLast(Node &node, Value x, int64_t axis, Body body) {
  int64_t rank = shapeOf(x).size();
  Shape permutation;
  for (int64_t i = 0; i < rank; ++i)
    permutation.push_back(i == axis ? rank - 1 : i == rank - 1 ? axis : i);
  return node.transpose(body(node.transpose(x, permutation)), permutation);
}

/// Before opset 13 everything from `axis` on was one dimension.
LogicalResult softmaxAxis(Node &node, int64_t &axis, Shape &rows) {
  Tensor *x = node.input(0);
  axis = node.version < 13 ? 1 : -1;
  if (failed(node.attribute("axis", axis)) || failed(node.normalizeAxis(axis, x->shape.size())))
    return failure();
  rows = x->shape;
  if (node.version < 13) {
    llvm::ArrayRef<int64_t> dims(x->shape);
    int64_t last = *elementCount(dims.drop_front(axis));
    rows.assign(dims.begin(), dims.begin() + axis);
    rows.push_back(last);
  }
  if (!isFloat(x->type))
    return node.error() << "of " << typeText(*x) << ", expected floats";
  return node.emittable(x);
}

LogicalResult softmax(Node &node) {
  int64_t axis;
  Shape rows;
  if (failed(node.arity(1, 1)) || failed(softmaxAxis(node, axis, rows)))
    return failure();
  Value x = node.reshape(node.value(node.input(0)), rows);
  Value y = alongLast(node, x, axis, [&](Value row) { return node.emit<tx::SoftmaxOp>(row); });
  return node.set(0, node.reshape(y, node.input(0)->shape));
}

LogicalResult logSoftmax(Node &node) {
  int64_t axis;
  Shape rows;
  if (failed(node.arity(1, 1)) || failed(softmaxAxis(node, axis, rows)))
    return failure();
  Value x = node.reshape(node.value(node.input(0)), rows);
  Value y = alongLast(node, x, axis, [&](Value row) {
    // x - max - log(sum(exp(x - max))): no overflow, and exact where softmax would underflow.
    Shape shape(shapeOf(row)), kept(shape), outer(shape);
    kept.back() = 1;
    outer.pop_back();
    int64_t last = outer.size();
    auto reduced = RankedTensorType::get(outer, getElementTypeOrSelf(row.getType()));
    auto spread = [&](Value v) { return node.broadcast(node.reshape(v, kept), shape); };
    Value max = tx::ReduceMaxOp::create(node.builder(), node.loc, reduced, row, last);
    Value shifted = node.emit<tx::SubOp>({row, spread(max)});
    Value sum = tx::ReduceSumOp::create(node.builder(), node.loc, reduced,
                                        node.emit<tx::ExpOp>(shifted), last);
    return node.emit<tx::SubOp>({shifted, spread(node.emit<tx::LogOp>(sum))});
  });
  return node.set(0, node.reshape(y, node.input(0)->shape));
}

/// Normalizes over all dimensions from `axis` on, as one. stash_type asks for the statistics in
/// float32, which is what every runtime of ours computes at least. Under torch.autocast x has 16 bits and
/// weight and bias 32, which PyTorch computes and exports, although ONNX does not allow it.
LogicalResult layerNorm(Node &node) {
  int64_t axis = -1, stashType = 1;
  float epsilon = 1e-5f;
  if (failed(node.arity(2, 3)) || failed(node.attribute("axis", axis)) ||
      failed(node.attribute("epsilon", epsilon)) || failed(node.attribute("stash_type", stashType)))
    return failure();
  Tensor *x = node.input(0), *w = node.input(1), *b = node.input(2);
  if (failed(node.normalizeAxis(axis, x->shape.size())))
    return failure();
  if (!isFloat(x->type) || !isFloat(w->type) || (b && !isFloat(b->type)))
    return node.error() << "of " << typeText(*x) << " with a weight of " << typeText(*w)
                        << (b ? " and a bias of " + typeText(*b) : "") << ", expected floats";
  if (failed(node.emittable({x, w})) || (b && failed(node.emittable(b))))
    return failure();
  llvm::ArrayRef<int64_t> dims(x->shape);
  Shape normalized(dims.drop_front(axis));
  Shape merged(dims.take_front(axis));
  merged.push_back(*elementCount(normalized));
  auto row = [&](Tensor *tensor, const char *what) -> FailureOr<Value> {
    Tensor target;
    target.shape = normalized;
    Shape common;
    if (failed(node.broadcastShape({&target, tensor}, common)))
      return failure();
    if (common != normalized)
      return FailureOr<Value>(node.error()
                              << "has a " << what << " of shape " << shapeText(tensor->shape)
                              << ", expected " << shapeText(normalized));
    Value asX = Math(node).cast(node.value(tensor), getElementTypeOrSelf(node.value(x).getType()));
    return node.reshape(node.broadcast(asX, normalized), merged.back());
  };
  FailureOr<Value> weight = row(w, "weight");
  if (failed(weight))
    return failure();
  FailureOr<Value> bias = tx::createSplat(node.builder(), node.loc, weight->getType(), 0);
  if (b)
    bias = row(b, "bias");
  if (failed(bias))
    return failure();
  auto norm = tx::LayerNormOp::create(
      node.builder(), node.loc, ValueRange{node.reshape(node.value(x), merged), *weight, *bias},
      node.builder().getNamedAttr("epsilon", node.builder().getF64FloatAttr(asWritten(epsilon))));
  Shape statistics(dims);
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  if (failed(node.set(0, node.reshape(norm.getY(), x->shape))))
    return failure();
  if (node.wants(1) && failed(node.set(1, node.reshape(norm.getMean(), statistics))))
    return failure();
  return node.wants(2) ? node.set(2, node.reshape(norm.getRstd(), statistics)) : success();
}

/// x / sqrt(mean(x^2) + epsilon), times a weight, over all dimensions from `axis` on.
LogicalResult rmsNorm(Node &node) {
  int64_t axis = -1, stashType = 1;
  float epsilon = 1e-5f;
  if (failed(node.arity(2, 2)) || failed(node.attribute("axis", axis)) ||
      failed(node.attribute("epsilon", epsilon)) || failed(node.attribute("stash_type", stashType)))
    return failure();
  Tensor *x = node.input(0), *w = node.input(1);
  if (failed(node.normalizeAxis(axis, x->shape.size())))
    return failure();
  if (!isFloat(x->type) || !isFloat(w->type))
    return node.error() << "of " << typeText(*x) << " with a weight of " << typeText(*w)
                        << ", expected floats";
  Shape common;
  if (failed(node.broadcastShape({x, w}, common)) || failed(node.emittable({x, w})))
    return failure();
  if (common != x->shape)
    return node.error() << "has a weight of shape " << shapeText(w->shape) << " for "
                        << shapeText(x->shape);
  Math m(node);
  Value value = node.value(x), weight = node.value(w);
  Type element = getElementTypeOrSelf(value.getType());
  bool isShort = x->type == DType::f16 || x->type == DType::bf16;
  Value wide = stashType == 1 && isShort ? m.cast(value, node.builder().getF32Type()) : value;
  Shape axes(llvm::to_vector(llvm::seq<int64_t>(axis, x->shape.size())));
  Value root = m.apply<tx::SqrtOp>(m.add(m.mean(m.mul(wide, wide), axes), asWritten(epsilon)));
  Value normal = m.cast(m.div(wide, root), element);
  if (failed(node.set(0, m.mul(normal, m.cast(weight, element)))))
    return failure();
  return node.wants(1) ? node.set(1, m.apply<tx::ReciprocalOp>(root)) : success();
}

/// The channels (dimension 1) in groups, each normalized over all that it holds.
LogicalResult normalizeGroups(Node &node, int64_t groups, bool perGroup) {
  float epsilon = 1e-5f;
  int64_t stashType = 1;
  if (failed(node.arity(3, 3)) || failed(node.attribute("epsilon", epsilon)) ||
      (node.version >= 21 && node.has("stash_type") &&
       failed(node.attribute("stash_type", stashType))))
    return failure();
  Tensor *x = node.input(0), *scale = node.input(1), *bias = node.input(2);
  if (!isFloat(x->type) || x->shape.size() < 3)
    return node.error() << "of " << typeText(*x)
                        << ", expected floats of at least three dimensions";
  int64_t channels = x->shape[1];
  if (groups < 1 || channels % groups != 0)
    return node.error() << "of " << channels << " channels in " << groups << " groups";
  for (Tensor *each : {scale, bias})
    if (each->type != x->type || each->shape != Shape{perGroup ? groups : channels})
      return node.error() << "has a scale or bias that is " << typeText(*each) << ", expected "
                          << (perGroup ? groups : channels) << " of " << dtypeName(x->type);
  if (failed(node.emittable({x, scale, bias})))
    return failure();
  Math m(node);
  int64_t width = *elementCount(x->shape) / (x->shape[0] * groups);
  Value rows = node.reshape(node.value(x), {x->shape[0], groups, width});
  Type element = getElementTypeOrSelf(rows.getType());
  auto norm = tx::LayerNormOp::create(
      node.builder(), node.loc,
      ValueRange{rows, m.constant(element, width, 1), m.constant(element, width, 0)},
      node.builder().getNamedAttr("epsilon", node.builder().getF64FloatAttr(asWritten(epsilon))));
  Value normal = norm.getY();
  auto scaled = [&](Value v, llvm::ArrayRef<int64_t> shape) {
    return m.add(m.mul(v, node.reshape(node.value(scale), shape)),
                 node.reshape(node.value(bias), shape));
  };
  if (perGroup)
    return node.set(0, node.reshape(scaled(normal, {groups, 1}), x->shape));
  Shape spread(x->shape.size() - 1, 1);
  spread[0] = channels;
  return node.set(0, scaled(node.reshape(normal, x->shape), spread));
}

/// Until opset 20 scale and bias were given per group.
LogicalResult groupNorm(Node &node) {
  int64_t groups = 0;
  if (failed(node.attribute("num_groups", groups)))
    return failure();
  return normalizeGroups(node, groups, node.version < 21);
}

LogicalResult instanceNorm(Node &node) {
  if (failed(node.arity(3, 3)))
    return failure();
  llvm::ArrayRef<int64_t> shape(node.input(0)->shape);
  return normalizeGroups(node, shape.size() < 2 ? 1 : shape[1], false);
}

/// By the statistics of the whole training set: inference.
LogicalResult batchNorm(Node &node) {
  float epsilon = 1e-5f, momentum = 0.9f;
  int64_t training = 0;
  if (failed(node.arity(5, 5)) || failed(node.attribute("epsilon", epsilon)) ||
      failed(node.attribute("momentum", momentum)) ||
      (node.version >= 14 && failed(node.attribute("training_mode", training))))
    return failure();
  if (training || updatesStatistics(node.proto))
    return node.error() << kBatchNormTraining;
  Tensor *x = node.input(0);
  if (!isFloat(x->type) || x->shape.size() < 2)
    return node.error() << "of " << typeText(*x) << ", expected floats of at least two dimensions";
  if (failed(node.emittable(x)))
    return failure();
  Shape spread(x->shape.size() - 1, 1);
  spread[0] = x->shape[1];
  Value parts[4];
  for (int i = 0; i < 4; ++i) {
    Tensor *each = node.input(1 + i);
    if (each->type != x->type || each->shape != Shape{x->shape[1]})
      return node.error() << "input " << 1 + i << " is " << typeText(*each) << ", expected "
                          << x->shape[1] << " of " << dtypeName(x->type);
    parts[i] = node.reshape(node.value(each), spread);
  }
  Math m(node);
  auto [scale, bias, mean, variance] = parts;
  Value factor = m.div(scale, m.apply<tx::SqrtOp>(m.add(variance, asWritten(epsilon))));
  return node.set(0, m.add(m.mul(m.sub(node.value(x), mean), factor), bias));
}

/// x over the sum of its sizes, or over its length, along one axis; zeros where that is zero.
LogicalResult lpNorm(Node &node) {
  int64_t axis = -1, p = 2;
  if (failed(node.arity(1, 1)) || failed(node.attribute("axis", axis)) ||
      failed(node.attribute("p", p)) ||
      failed(node.normalizeAxis(axis, node.input(0)->shape.size())))
    return failure();
  Tensor *x = node.input(0);
  if (!isFloat(x->type) || (p != 1 && p != 2))
    return node.error() << "of " << typeText(*x) << " with p = " << p
                        << ", expected floats and p = 1 or 2";
  if (failed(node.emittable(x)))
    return failure();
  Math m(node);
  Value value = node.value(x);
  Value size = p == 1 ? m.sum(m.apply<tx::AbsOp>(value), axis)
                      : m.apply<tx::SqrtOp>(m.sum(m.mul(value, value), axis));
  Value isZero = m.apply<tx::EqualOp>(size, m.like(size, 0));
  return node.set(0, m.div(value, m.select(isZero, m.like(size, 1), size)));
}

const OpRow normRows[] = {
    OpRow{"Softmax", "", 1, anyLater, softmax, OpEffect::Normalizes}.distributing(),
    {"LogSoftmax", "", 1, anyLater, logSoftmax, OpEffect::Normalizes},
    // Version 1, and the simplified one, are onnxruntime's own in ONNX's domain; others write the
    // simplified one with the domain of onnxruntime's other operators.
    {"LayerNormalization", "", 1, anyLater, layerNorm},
    {"RMSNormalization", "", 23, anyLater, rmsNorm},
    {"SimplifiedLayerNormalization", "", 1, anyLater, rmsNorm},
    {"SimplifiedLayerNormalization", "com.microsoft", 1, anyLater, rmsNorm},
    {"GroupNormalization", "", 18, anyLater, groupNorm},
    {"InstanceNormalization", "", 6, anyLater, instanceNorm},
    OpRow{"BatchNormalization", "", 9, anyLater, batchNorm}.fixed({3, 4}).keepingStatistics(),
    {"LpNormalization", "", 1, anyLater, lpNorm},
};

} // namespace

llvm::ArrayRef<OpRow> normOps() { return normRows; }

} // namespace partita::importer
