//===- Norm.cpp - LayerNormalization, Softmax -------------------------------------------------===//

#include "Node.h"

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

/// The double that a person means by this float: 1e-05f is 1e-05, not 9.99999975e-06. Epsilons are
/// written as decimals, and the exporter rounded them.
double asWritten(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", static_cast<double>(value));
  double wide = std::strtod(text, nullptr);
  return static_cast<float>(wide) == value ? wide : static_cast<double>(value);
}

/// Normalizes over all dimensions from `axis` on, as one. stash_type asks for the statistics in
/// float32, which is what every runtime of ours computes at least.
LogicalResult layerNorm(Node &node) {
  int64_t axis = -1, stashType = 1;
  float epsilon = 1e-5f;
  if (failed(node.arity(2, 3)) || failed(node.attribute("axis", axis)) ||
      failed(node.attribute("epsilon", epsilon)) || failed(node.attribute("stash_type", stashType)))
    return failure();
  Tensor *x = node.input(0), *w = node.input(1), *b = node.input(2);
  if (failed(node.normalizeAxis(axis, x->shape.size())))
    return failure();
  if (!isFloat(x->type) || w->type != x->type || (b && b->type != x->type))
    return node.error() << "of " << typeText(*x) << " with a weight of " << typeText(*w)
                        << ", expected floats of one type";
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
    return node.reshape(node.broadcast(node.value(tensor), normalized), merged.back());
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

const OpRow rows[] = {
    {"Softmax", "", 1, anyLater, softmax},
    {"LogSoftmax", "", 1, anyLater, logSoftmax},
    {"LayerNormalization", "", 17, anyLater, layerNorm},
};

} // namespace

llvm::ArrayRef<OpRow> normOps() { return rows; }

} // namespace partita::importer
