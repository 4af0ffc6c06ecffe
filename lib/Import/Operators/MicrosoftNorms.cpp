//===- MicrosoftNorms.cpp - norms of sums, as onnxruntime's optimizer fuses them --------------===//

#include "lib/Import/Operators/Microsoft.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// input + skip + bias; the skip may lack the batch.
FailureOr<Value> skipSum(Node &node, Tensor *bias) {
  Tensor *x = node.input(0), *skip = node.input(1);
  if (!isFloat(x->type) || skip->type != x->type || x->shape.size() < 2)
    return FailureOr<Value>(node.error() << "of " << typeText(*x) << " and " << typeText(*skip)
                                         << ", expected floats of one type");
  if (failed(checkBroadcast(node, skip, x->shape, "skip")) || failed(node.emittable({x, skip})) ||
      (bias && failed(checkRow(node, bias, *x, x->shape.back(), "bias"))))
    return failure();
  Math m(node);
  Value sum = m.add(node.value(x), node.value(skip));
  return bias ? m.add(sum, node.value(bias)) : sum;
}

LogicalResult setLayerNorm(Node &node, Value x, Tensor *weight, Tensor *bias, float epsilon) {
  Math m(node);
  Value w = node.value(weight);
  auto norm = tx::LayerNormOp::create(
      node.builder(), node.loc, ValueRange{x, w, bias ? node.value(bias) : m.like(w, 0)},
      node.builder().getNamedAttr("epsilon", node.builder().getF64FloatAttr(asWritten(epsilon))));
  return node.set(0, norm.getY());
}

/// Only the sum is a result that a program reads: mean and deviation are for onnxruntime's own
/// backward pass.
LogicalResult setSum(Node &node, Value sum) {
  if (node.wants(1) || node.wants(2))
    return node.error() << "yields a mean or a deviation, which is not supported";
  return node.set(3, sum);
}

LogicalResult skipLayerNorm(Node &node) {
  float epsilon = 1e-12f;
  if (failed(node.arity(3, 5)) || failed(node.attribute("epsilon", epsilon)))
    return failure();
  Tensor *x = node.input(0), *weight = node.input(2), *bias = node.input(3);
  FailureOr<Value> sum = skipSum(node, node.input(4));
  if (failed(sum) || failed(checkRow(node, weight, *x, x->shape.back(), "weight")) ||
      (bias && failed(checkRow(node, bias, *x, x->shape.back(), "bias"))))
    return failure();
  return failed(setLayerNorm(node, *sum, weight, bias, epsilon)) ? failure() : setSum(node, *sum);
}

LogicalResult skipRmsNorm(Node &node) {
  float epsilon = 1e-12f;
  if (failed(node.arity(3, 4)) || failed(node.attribute("epsilon", epsilon)))
    return failure();
  Tensor *x = node.input(0), *weight = node.input(2);
  FailureOr<Value> sum = skipSum(node, node.input(3));
  if (failed(sum) || failed(checkRow(node, weight, *x, x->shape.back(), "weight")))
    return failure();
  Math m(node);
  Value square = m.mean(m.mul(*sum, *sum), x->shape.size() - 1);
  Value normal = m.div(*sum, m.apply<tx::SqrtOp>(m.add(square, asWritten(epsilon))));
  return failed(node.set(0, m.mul(normal, node.value(weight)))) ? failure() : setSum(node, *sum);
}

/// BERT's: words + positions + segments, normalized.
LogicalResult embedLayerNorm(Node &node) {
  float epsilon = 1e-12f;
  int64_t maskType = 0;
  if (failed(node.arity(1, 9)) || failed(node.attribute("epsilon", epsilon)) ||
      failed(node.attribute("mask_index_type", maskType)))
    return failure();
  for (int i : {2, 3, 5, 6})
    if (!node.input(i))
      return node.error() << "input " << i << " is missing";
  Tensor *ids = node.input(0), *table = node.input(2), *places = node.input(3);
  if (ids->shape.size() != 2 || table->shape.size() != 2)
    return node.error() << "of " << typeText(*ids) << " and " << typeText(*table)
                        << ", expected two dimensions each";
  Shape shape(ids->shape);
  int64_t width = table->shape[1];
  FailureOr<Value> sum = lookUp(node, ids, table, shape);
  if (failed(sum))
    return failure();
  Math m(node);
  auto add = [&](FailureOr<Value> rows) -> LogicalResult {
    if (failed(rows))
      return failure();
    if (shapeOf(*rows).back() != width)
      return node.error() << "adds rows of " << shapeOf(*rows).back() << " to rows of " << width;
    sum = m.add(*sum, *rows);
    return success();
  };
  Tensor *positionIds = node.input(8);
  if (!positionIds) {
    Value iota = node.reshape(m.iota(m.i64(), 1, 0, shape[1]), {1, shape[1]});
    if (places->shape.size() != 2 || places->shape[0] < shape[1])
      return node.error() << "has " << typeText(*places) << " positions for a length of "
                          << shape[1];
    positionIds = node.importer.create(iota);
  }
  Shape idsShape{positionIds->shape.size() == 2 ? positionIds->shape[0] : 0, shape[1]};
  if (idsShape[0] != 1 && idsShape[0] != shape[0])
    return node.error() << "has positions that are " << typeText(*positionIds);
  if (failed(add(lookUp(node, positionIds, places, idsShape))))
    return failure();
  if (node.input(1) && node.input(4) &&
      failed(add(lookUp(node, node.input(1), node.input(4), shape))))
    return failure();
  for (int i : {5, 6})
    if (failed(checkRow(node, node.input(i), *table, width, "weight or bias")))
      return failure();
  if (failed(setLayerNorm(node, *sum, node.input(5), node.input(6), epsilon)))
    return failure();
  if (node.wants(1)) { // how many tokens count
    Tensor *mask = node.input(7);
    if (!mask || mask->type != DType::i32 || mask->shape != shape)
      return node.error() << "yields the mask's index without a mask of " << shapeText(shape)
                          << " of int32";
    Value count = m.halve<tx::AddOp>(node.value(mask), 1);
    if (failed(node.set(1, node.reshape(count, shape[0]))))
      return failure();
  }
  return node.set(2, *sum);
}

const OpRow microsoftNormRows[] = {
    {"SkipLayerNormalization", kMicrosoft, 1, anyLater, skipLayerNorm},
    {"SkipSimplifiedLayerNormalization", kMicrosoft, 1, anyLater, skipRmsNorm},
    {"EmbedLayerNormalization", kMicrosoft, 1, anyLater, embedLayerNorm},
};

} // namespace

llvm::ArrayRef<OpRow> microsoftNormOps() { return microsoftNormRows; }

} // namespace partita::importer
