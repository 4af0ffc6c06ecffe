//===- Frequencies.cpp ------------------------------------------------------------------------===//

#include "Frequencies.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace partita::importer {

/// Does the operator hand angles on, as products with positions and in other shapes?
static bool handsOn(llvm::StringRef op) {
  static constexpr llvm::StringLiteral kOps[] = {
      "Cast", "Concat", "Div",     "Einsum", "Expand",  "Gather",    "Identity", "MatMul",
      "Mul",  "Neg",    "Reshape", "Slice",  "Squeeze", "Transpose", "Unsqueeze"};
  return llvm::is_contained(kOps, op);
}

llvm::StringSet<> findFrequencies(const onnx::GraphProto &graph) {
  // Names that are used, and whether all uses known so far end in a sine or cosine. A node comes
  // after what it uses, so from the end every name's uses are complete when its node is reached.
  llvm::StringMap<bool> angles;
  auto use = [&](llvm::StringRef name, bool isAngle) {
    auto [entry, isNew] = angles.try_emplace(name, isAngle);
    entry->second &= isAngle;
  };
  for (const onnx::ValueInfoProto &output : graph.output())
    use(output.name(), false);
  for (const onnx::NodeProto &node : llvm::reverse(graph.node())) {
    if (node.op_type() == "Shape" || node.op_type() == "Size")
      continue; // asks for no values
    bool isAngle = node.op_type() == "Sin" || node.op_type() == "Cos";
    if (handsOn(node.op_type()))
      isAngle = llvm::all_of(node.output(), [&](const std::string &output) {
        auto known = angles.find(output);
        return known != angles.end() && known->second;
      });
    for (const std::string &input : node.input())
      use(input, isAngle);
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        for (const onnx::NodeProto &inner : attribute.g().node())
          for (const std::string &input : inner.input())
            use(input, false);
  }
  llvm::StringSet<> found;
  for (const onnx::TensorProto &tensor : graph.initializer())
    if (auto known = angles.find(tensor.name()); known != angles.end() && known->second)
      found.insert(tensor.name());
  return found;
}

} // namespace partita::importer
