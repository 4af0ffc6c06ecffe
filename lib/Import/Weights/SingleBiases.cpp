//===- SingleBiases.cpp -----------------------------------------------------------------------===//

#include "lib/Import/Weights/SingleBiases.h"
#include "lib/Import/Operators/Registry.h"
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
    for (const onnx::NodeProto &node : graph.node()) {
      countUses(node);
      if (canonicalDomain(node.domain()).empty())
        look(node);
    }
    for (const onnx::ValueInfoProto &output : graph.output())
      ++uses[output.name()];
    llvm::StringSet<> found;
    for (const auto &each : biases)
      if (each.second == uses.lookup(each.first()))
        found.insert(each.first());
    return found;
  }

private:
  void countUses(const onnx::NodeProto &node) {
    for (const std::string &input : node.input())
      ++uses[input];
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        for (const onnx::NodeProto &inner : attribute.g().node())
          countUses(inner);
  }

  void look(const onnx::NodeProto &node) {
    llvm::StringRef op = node.op_type();
    if (op == "Transpose" && node.input_size() == 1 && node.output_size() == 1) {
      if (const onnx::TensorProto *matrix = tensorOf(node.input(0)); matrix && hasOneRow(*matrix))
        columns.insert(node.output(0));
    } else if (op == "MatMul" && node.input_size() == 2 && node.output_size() == 1 &&
               isColumn(node.input(1))) {
      products.insert(node.output(0));
    } else if (op == "Add" && node.input_size() == 2) {
      for (int i : {0, 1})
        if (products.contains(node.input(1 - i)))
          take(node.input(i));
    } else if (op == "Gemm" && node.input_size() == 3) {
      bool transposed = llvm::any_of(node.attribute(), [](const onnx::AttributeProto &each) {
        return each.name() == "transB" && each.i() != 0;
      });
      const onnx::TensorProto *matrix = tensorOf(node.input(1));
      if (transposed ? matrix && hasOneRow(*matrix) : isColumn(node.input(1)))
        take(node.input(2));
    } else if (op == "Conv" && node.input_size() == 3) {
      if (const onnx::TensorProto *kernels = tensorOf(node.input(1));
          kernels && kernels->dims_size() > 2 && kernels->dims(0) == 1)
        take(node.input(2));
    }
  }

  const onnx::TensorProto *tensorOf(llvm::StringRef name) const { return tensors.lookup(name); }

  static bool hasOneRow(const onnx::TensorProto &tensor) {
    return tensor.dims_size() == 2 && tensor.dims(0) == 1;
  }

  bool isColumn(llvm::StringRef name) const {
    const onnx::TensorProto *matrix = tensorOf(name);
    return columns.contains(name) || (matrix && matrix->dims_size() == 2 && matrix->dims(1) == 1);
  }

  void take(llvm::StringRef name) {
    if (const onnx::TensorProto *tensor = tensorOf(name);
        tensor && tensor->dims_size() == 1 && tensor->dims(0) == 1)
      ++biases[name];
  }

  const onnx::GraphProto &graph;
  llvm::StringMap<const onnx::TensorProto *> tensors;
  llvm::StringSet<> columns, products;
  llvm::StringMap<int64_t> uses, biases; ///< how often each name is read, and as a bias
};

} // namespace

llvm::StringSet<> findSingleBiases(const onnx::GraphProto &graph) {
  return SingleBiasFinder(graph).run();
}

} // namespace partita::importer
