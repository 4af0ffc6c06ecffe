//===- Buffers.cpp - float initializers that are no parameters --------------------------------===//

#include "Buffers.h"
#include "HostTensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace partita::importer {

namespace {

/// What is known of all uses of a value so far.
struct Uses {
  bool angles = true; ///< they end in a sine or cosine
  bool fixed = true;  ///< they are angles, or scale what is computed from integers
};

/// Does the operator hand on its numbers as they are?
bool reshapes(llvm::StringRef op) {
  static constexpr llvm::StringLiteral kOps[] = {"Cast",    "Expand",    "Identity", "Reshape",
                                                 "Squeeze", "Transpose", "Unsqueeze"};
  return llvm::is_contained(kOps, op);
}

/// Does it hand angles on, as products with positions and in other shapes?
bool handsAnglesOn(llvm::StringRef op) {
  static constexpr llvm::StringLiteral kOps[] = {"Concat", "Div", "Einsum", "Gather",
                                                 "MatMul", "Mul", "Neg",    "Slice"};
  return reshapes(op) || llvm::is_contained(kOps, op);
}

bool isFloatType(int32_t type) {
  std::optional<DType> known = dtypeFromOnnx(type);
  return known && isFloat(*known);
}

bool isTensorOfNumbers(const onnx::TensorProto &tensor) {
  return isFloatType(tensor.data_type()) && tensor.dims_size() > 0;
}

/// Values that integers, and scalars, are all that they are computed from.
llvm::StringSet<> findFromIntegers(const onnx::GraphProto &graph) {
  llvm::StringSet<> floats; // the others
  for (const onnx::ValueInfoProto &input : graph.input())
    if (isFloatType(input.type().tensor_type().elem_type()))
      floats.insert(input.name());
  for (const onnx::TensorProto &tensor : graph.initializer())
    if (isTensorOfNumbers(tensor))
      floats.insert(tensor.name());
  llvm::StringSet<> result;
  for (const onnx::NodeProto &node : graph.node()) {
    bool fromIntegers = llvm::all_of(node.attribute(), [](const onnx::AttributeProto &each) {
      return !each.has_g() && !(each.has_t() && isTensorOfNumbers(each.t()));
    });
    // A shape is integers, whatever has it.
    if (node.op_type() != "Shape" && node.op_type() != "Size")
      for (const std::string &input : node.input())
        fromIntegers &= !floats.contains(input);
    for (const std::string &output : node.output())
      (fromIntegers ? result : floats).insert(output);
  }
  return result;
}

class Finder {
public:
  explicit Finder(const onnx::GraphProto &graph)
      : graph(graph), fromIntegers(findFromIntegers(graph)) {}

  /// A node comes after what it uses, so from the end a name's uses are all known when the node
  /// that makes it is reached.
  llvm::StringSet<> run() {
    for (const onnx::ValueInfoProto &output : graph.output())
      use(output.name(), {false, false});
    for (const onnx::NodeProto &node : llvm::reverse(graph.node()))
      look(node);
    llvm::StringSet<> found;
    for (const onnx::TensorProto &tensor : graph.initializer())
      if (auto known = uses.find(tensor.name()); known != uses.end() && known->second.fixed)
        found.insert(tensor.name());
    return found;
  }

private:
  void use(llvm::StringRef name, Uses here) {
    Uses &all = uses[name];
    all.angles &= here.angles;
    all.fixed &= here.fixed;
  }

  Uses ofOutputs(const onnx::NodeProto &node) {
    Uses all;
    for (const std::string &output : node.output()) {
      auto known = uses.find(output);
      all.angles &= known != uses.end() && known->second.angles;
      all.fixed &= known != uses.end() && known->second.fixed;
    }
    return all;
  }

  void look(const onnx::NodeProto &node) {
    llvm::StringRef op = node.op_type();
    if (op == "Shape" || op == "Size")
      return; // asks for no values
    Uses here{op == "Sin" || op == "Cos", op == "Sin" || op == "Cos"};
    if (handsAnglesOn(op)) {
      here = ofOutputs(node);
      here.fixed = reshapes(op) ? here.fixed : here.angles;
    }
    for (int i = 0; i < node.input_size(); ++i) {
      bool scales =
          op == "Mul" && node.input_size() == 2 && fromIntegers.contains(node.input(1 - i));
      use(node.input(i), {here.angles, here.fixed || scales});
    }
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        for (const onnx::NodeProto &inner : attribute.g().node())
          for (const std::string &input : inner.input())
            use(input, {false, false});
  }

  const onnx::GraphProto &graph;
  llvm::StringSet<> fromIntegers;
  llvm::StringMap<Uses> uses;
};

} // namespace

llvm::StringSet<> findBuffers(const onnx::GraphProto &graph) { return Finder(graph).run(); }

} // namespace partita::importer
