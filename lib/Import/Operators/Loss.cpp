//===- Loss.cpp - losses as operators of the graph --------------------------------------------===//

#include "lib/Import/File/ExportRecord.h"
#include "lib/Import/Operators/Lookup.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// Scores with the classes last, labels, and what the attributes say.
struct LossParts {
  Value scores, labels; // [n, d..., c], [n, d...]
  Value weights;        // of every label's class, zero where it is ignored; null: all one
  Value kept;           // zero where the label is ignored, else one; null: all one
  Value classes;        // weights of classes; null: all one
  std::string reduction = "mean";
  int64_t ignored = INT32_MIN; // a label that none has
};

LogicalResult readLoss(Node &node, LossParts &parts) {
  if (failed(node.arity(2, 3)) || failed(node.attribute("reduction", parts.reduction)) ||
      failed(node.attribute("ignore_index", parts.ignored)))
    return failure();
  if (parts.reduction != "mean" && parts.reduction != "sum" && parts.reduction != "none")
    return node.error() << "attribute 'reduction' is " << quoted(parts.reduction)
                        << ", expected 'mean', 'sum' or 'none'";
  Tensor *scores = node.input(0), *labels = node.input(1), *weights = node.input(2);
  Shape expected(scores->shape);
  if (expected.size() >= 2)
    expected.erase(expected.begin() + 1);
  if (!isFloat(scores->type) || scores->shape.size() < 2 || labels->shape != expected)
    return node.error() << "of " << typeText(*scores) << " with labels " << typeText(*labels)
                        << ", expected floats of n classes in the second dimension and one label "
                           "for each position"
                        << (isFloat(labels->type) && labels->shape == scores->shape
                                ? "; for a loss by probabilities of classes, write "
                                  "-(probabilities * scores.log_softmax(1)).sum(1).mean()"
                                : "");
  int64_t classes = scores->shape[1];
  if (weights && (weights->type != scores->type || weights->shape != Shape{classes}))
    return node.error() << "has weights that are " << typeText(*weights) << ", expected " << classes
                        << " of " << dtypeName(scores->type);
  if (failed(checkIndexType(node, *labels)) || failed(node.emittable({scores, labels})) ||
      (weights && failed(node.emittable(weights))))
    return failure();
  Math m(node);
  parts.scores = m.axisToLast(node.value(scores), 1);
  parts.labels = m.cast(node.value(labels), m.i64());
  if (!weights && !node.has("ignore_index"))
    return success();
  Value kept = m.apply<tx::NotOp>(
      m.apply<tx::EqualOp>(parts.labels, m.like(parts.labels, static_cast<double>(parts.ignored))));
  Type element = getElementTypeOrSelf(parts.scores.getType());
  parts.weights = parts.kept = m.cast(kept, element);
  if (weights) {
    parts.classes = node.value(weights);
    Value known = m.select(kept, parts.labels, m.like(parts.labels, 0));
    parts.weights = m.mul(parts.weights, takeAlong(node, parts.classes, 0, known));
  }
  return success();
}

/// PyTorch's label_smoothing, for which ONNX has no attribute, as dynamo's exporter records it:
/// cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing).
double smoothingOf(Node &node) {
  std::optional<ProgramCall> call = callOf(node.proto);
  double smoothing = 0;
  bool isThere = call && call->operation == "cross_entropy_loss" &&
                 !call->textAt(5).getAsDouble(smoothing) && smoothing > 0 && smoothing <= 1;
  return isThere ? smoothing : 0;
}

/// For every label, the mean over all classes of what each would lose as the label, by its weight:
/// log(sum(exp)) less the mean of the scores. The logarithm is the first class's loss and score, so that
/// scores split over classes stay split.
Value lossOfAllClasses(Node &node, const LossParts &parts) {
  Math m(node);
  Type element = getElementTypeOrSelf(parts.scores.getType());
  int64_t rank = shapeOf(parts.scores).size(), classes = shapeOf(parts.scores).back();
  auto first = tx::CrossEntropyOp::create(
      node.builder(), node.loc, ValueRange{parts.scores, m.like(parts.labels, 0)},
      node.builder().getNamedAttr("ignore_index", node.builder().getI64IntegerAttr(INT32_MIN)));
  Value losses = first.getLoss();
  Value shares = m.iota(element, 1, 0, classes);
  shares = m.cast(m.apply<tx::EqualOp>(shares, m.like(shares, 0)), element);
  if (parts.classes) {
    Value mean = m.mean(parts.classes, {0});
    losses = m.mul(losses, node.reshape(mean, Shape(rank - 1, 1)));
    shares = m.sub(m.mul(shares, mean), m.div(parts.classes, classes));
  } else {
    shares = m.sub(shares, 1.0 / classes);
  }
  Value scores = m.sum(m.mul(parts.scores, shares), {rank - 1});
  losses = m.add(losses, node.reshape(scores, shapeOf(parts.labels)));
  return parts.kept ? m.mul(losses, parts.kept) : losses;
}

/// `losses`: one for every label, zero where it is ignored.
LogicalResult reduceLoss(Node &node, const LossParts &parts, Value losses, double smoothing = 0) {
  Math m(node);
  Shape all(llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(losses).size())));
  if (parts.weights)
    losses = m.mul(losses, parts.weights);
  if (smoothing > 0)
    losses = m.add(m.mul(losses, 1 - smoothing), m.mul(lossOfAllClasses(node, parts), smoothing));
  if (parts.reduction == "none")
    return node.set(0, losses);
  Value result =
      parts.reduction == "mean" && !parts.weights ? m.mean(losses, all) : m.sum(losses, all);
  if (parts.reduction == "mean" && parts.weights)
    result = m.div(result, m.sum(parts.weights, all));
  return node.set(0, node.reshape(result, llvm::ArrayRef<int64_t>()));
}

LogicalResult crossEntropy(Node &node) {
  LossParts parts;
  if (failed(readLoss(node, parts)))
    return failure();
  Math m(node);
  auto loss = tx::CrossEntropyOp::create(
      node.builder(), node.loc, ValueRange{parts.scores, parts.labels},
      node.builder().getNamedAttr("ignore_index", node.builder().getI64IntegerAttr(parts.ignored)));
  if (node.wants(1)) {
    Value logits = node.value(node.input(0));
    if (failed(node.set(1, m.sub(logits, m.logSumExp(logits, 1)))))
      return failure();
  }
  return reduceLoss(node, parts, loss.getLoss(), smoothingOf(node));
}

/// The scores are logarithms of probabilities already.
LogicalResult negativeLogLikelihood(Node &node) {
  LossParts parts;
  if (failed(readLoss(node, parts)))
    return failure();
  Math m(node);
  Value labels = parts.labels;
  if (node.has("ignore_index"))
    labels = m.select(m.apply<tx::EqualOp>(labels, m.like(labels, double(parts.ignored))),
                      m.like(labels, 0), labels);
  Shape apart(shapeOf(labels));
  apart.push_back(1);
  Value chosen = takeOfEach(node, parts.scores, node.reshape(labels, apart));
  chosen = node.reshape(chosen, shapeOf(labels));
  return reduceLoss(node, parts, m.negate(chosen));
}

const OpRow lossRows[] = {
    OpRow{"SoftmaxCrossEntropyLoss", "", 12, anyLater, crossEntropy}.fixed({2}),
    OpRow{"NegativeLogLikelihoodLoss", "", 12, anyLater, negativeLogLikelihood}.fixed({2}),
};

} // namespace

llvm::ArrayRef<OpRow> lossOps() { return lossRows; }

} // namespace partita::importer
