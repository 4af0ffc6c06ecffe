//===- Control.cpp - Identity, Dropout, If ----------------------------------------------------===//

#include "lib/Import/File/Node.h"

using namespace mlir;

namespace partita::importer {
namespace {

LogicalResult identity(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  return node.set(0, node.input(0));
}

/// Marks a dropout's id as a seed: one of a file's numbers is never another's seed.
constexpr int64_t kSeeded = int64_t(1) << 62;

/// Dropout of a known ratio; in inference mode, which most exports are in, it passes its input on
/// and its mask is all true. In training mode its random numbers are kept apart from other nodes'
/// by the seed, if there is one, else by its number among them.
LogicalResult dropout(Node &node) {
  float ratio = 0.5f;
  int64_t seed = 0, training = 0;
  bool seeded = node.has("seed");
  if (failed(node.arity(1, 3)) || failed(node.attribute("seed", seed)) ||
      failed(node.attribute("ratio", ratio)))
    return failure();
  if (node.input(2) && failed(node.knownInt(2, "whether it is in training mode", training)))
    return failure();
  Tensor *x = node.input(0);
  if (Tensor *given = node.input(1); given && training) {
    if (!given->host || *elementCount(given->shape) != 1 || !isFloat(given->type))
      return node.notKnown("its ratio");
    ratio = static_cast<float>(given->host->onlyDouble());
  }
  if (training && !(ratio >= 0 && ratio < 1))
    return node.error() << "has a ratio of " << ratio << ", expected one from 0 to below 1";
  if (!training || ratio == 0) {
    if (failed(node.set(0, x)))
      return failure();
    return node.set(1, HostTensor::scalarInt(DType::boolean, 1).broadcast(x->shape));
  }
  if (!isFloat(x->type))
    return node.error() << "of " << typeText(*x) << ", expected floats";
  if (failed(node.emittable(x)))
    return failure();
  int64_t id = seeded ? (seed & (kSeeded - 1)) | kSeeded : node.importer.dropouts++;
  auto emit = [&](Value value) -> Value {
    return tx::DropoutOp::create(node.builder(), node.loc, value.getType(), value, Value(), Value(),
                                 Value(), llvm::APFloat(asWritten(ratio)), id, nullptr);
  };
  Value value = node.value(x);
  if (failed(node.set(0, emit(value))))
    return failure();
  if (!node.wants(1))
    return success();
  auto one = tx::createSplat(node.builder(), node.loc, value.getType(), 1);
  auto zero = tx::createSplat(node.builder(), node.loc, value.getType(), 0);
  return node.set(1, node.emit<tx::GreaterOp>({emit(one), zero}));
}

/// A branch on a known condition is taken here; it sees the names around it.
LogicalResult branch(Node &node) {
  const onnx::GraphProto *thenGraph = nullptr, *elseGraph = nullptr;
  if (failed(node.arity(1, 1)) || failed(node.attribute("then_branch", thenGraph)) ||
      failed(node.attribute("else_branch", elseGraph)))
    return failure();
  if (!thenGraph || !elseGraph)
    return node.error() << "does not have two branches";
  int64_t condition = 0;
  Tensor *tensor = node.input(0);
  if (tensor->type != DType::boolean || *elementCount(tensor->shape) != 1)
    return node.error() << "branches on " << typeText(*tensor) << ", expected one bool";
  if (!tensor->host) {
    if (node.importer.keepsGoing() &&
        (failed(node.importer.checkSupported(thenGraph->node(), node.frame)) ||
         failed(node.importer.checkSupported(elseGraph->node(), node.frame))))
      return failure();
    return node.notKnown("its condition", "; compute both branches and select by torch.where()");
  }
  condition = tensor->host->onlyInt();
  const onnx::GraphProto &graph = condition ? *thenGraph : *elseGraph;
  if (graph.output_size() < node.proto.output_size())
    return node.error() << "has " << node.proto.output_size() << " results, its branch "
                        << graph.output_size();
  Frame inner;
  inner.scope.parent = &node.frame.scope;
  inner.opsets = node.frame.opsets;
  inner.caller = node.frame.caller;
  inner.function = node.frame.function;
  inner.functionAttributes = node.frame.functionAttributes;
  inner.prefix = node.name + "/";
  if (failed(node.importer.checkSupported(graph.node(), inner)) ||
      failed(node.importer.importInitializers(graph, inner.scope)) ||
      failed(node.importer.importNodes(graph.node(), inner)))
    return failure();
  for (int i = 0; i < node.proto.output_size(); ++i) {
    Tensor *result = inner.scope.find(graph.output(i).name());
    if (!result)
      return node.error() << "its branch does not compute " << quoted(graph.output(i).name());
    if (failed(node.importer.loadInitializer(*result)) || failed(node.set(i, result)))
      return failure();
  }
  return success();
}

const OpRow controlRows[] = {
    OpRow{"Identity", "", 1, anyLater, identity, OpEffect::Renames}.takingSequences(),
    {"Dropout", "", 7, anyLater, dropout, OpEffect::Drops},
    {"If", "", 1, anyLater, branch},
};

} // namespace

llvm::ArrayRef<OpRow> controlOps() { return controlRows; }

} // namespace partita::importer
