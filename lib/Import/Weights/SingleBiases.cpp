//===- SingleBiases.cpp -----------------------------------------------------------------------===//

#include "lib/Import/Weights/SingleBiases.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/InitializerUses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace partita::importer {

namespace {

class SingleBiasFinder {
public:
  explicit SingleBiasFinder(const onnx::GraphProto &graph) : graph(graph) {
    for (const onnx::TensorProto &tensor : graph.initializer())
      tensors[tensor.name()] = &tensor;
  }

  llvm::StringSet<> run() {
    for (const onnx::NodeProto &node : graph.node())
      look(node);
    InitializerUses uses(graph);
    llvm::StringSet<> found;
    for (const auto &each : biases)
      if (each.second == uses.of(each.first()).size() && !uses.isOutput(each.first()))
        found.insert(each.first());
    return found;
  }

private:
  void look(const onnx::NodeProto &node) {
    const OpRow &facts = factsOf(node);
    if (node.input_size() == 0 || node.output_size() != 1)
      return;
    if (facts.effect == OpEffect::Reshapes) {
      if (const onnx::TensorProto *matrix = tensorOf(node.input(0)); matrix && isRow(*matrix))
        columns.insert(node.output(0));
    } else if (facts.isSum() && node.input_size() == 2) {
      for (int i : {0, 1})
        if (matmuls.contains(node.input(1 - i)))
          take(node.input(i));
    } else if (hasOneOutput(node, facts)) {
      if (facts.biasOperand >= 0 && facts.biasOperand < node.input_size())
        take(node.input(facts.biasOperand));
      else
        matmuls.insert(node.output(0));
    }
  }

  /// Is it a layer whose weight has one output?
  bool hasOneOutput(const onnx::NodeProto &node, const OpRow &facts) const {
    if (facts.outputDim < 0 || node.input_size() < 2)
      return false;
    bool transposed = llvm::any_of(node.attribute(), [](const onnx::AttributeProto &each) {
      return each.name() == "transB" && each.i() != 0;
    });
    const onnx::TensorProto *weight = tensorOf(node.input(1));
    if (!weight)
      return !transposed && columns.contains(node.input(1));
    int dim = transposed ? 1 - facts.outputDim : facts.outputDim;
    return weight->dims_size() > 1 && (weight->dims_size() == 2 || facts.outputDim == 0) &&
           weight->dims(dim) == 1;
  }

  const onnx::TensorProto *tensorOf(llvm::StringRef name) const { return tensors.lookup(name); }

  static bool isRow(const onnx::TensorProto &tensor) {
    return tensor.dims_size() == 2 && tensor.dims(0) == 1;
  }

  void take(llvm::StringRef name) {
    if (const onnx::TensorProto *tensor = tensorOf(name);
        tensor && tensor->dims_size() == 1 && tensor->dims(0) == 1)
      ++biases[name];
  }

  const onnx::GraphProto &graph;
  llvm::StringMap<const onnx::TensorProto *> tensors;
  llvm::StringSet<> columns;      ///< matrices of one row, in another shape
  llvm::StringSet<> matmuls;      ///< of one output, without a bias
  llvm::StringMap<size_t> biases; ///< how often each name is read as a bias
};

} // namespace

llvm::StringSet<> findSingleBiases(const onnx::GraphProto &graph) {
  return SingleBiasFinder(graph).run();
}

} // namespace partita::importer
