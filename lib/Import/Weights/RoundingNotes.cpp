//===- RoundingNotes.cpp - casts to 16 bits inside a model of 32 -------------------------------===//
//
// torch.autocast and x.half() are a Cast in ONNX, from which on PyTorch rounds every result. Programs
// here have one type, which --precision selects, so nothing is rounded at the cast, unless the result is
// widened again and nothing is computed in between: phase import keeps that (SinglePrecision.cpp). A model
// whose parameters have 16 bits also casts to them, after a norm in float32: it is computed in float32
// as a whole, which needs no note.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/WeightNotes.h"

namespace partita::importer {

namespace {

/// The type that a node casts to, if it is a float.
std::optional<DType> floatCastTo(const onnx::NodeProto &node) {
  if (node.op_type() != "Cast")
    return std::nullopt;
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == "to")
      if (std::optional<DType> type = dtypeFromOnnx(attribute.i()); type && isFloat(*type))
        return type;
  return std::nullopt;
}

/// Are its results numbers that vary with those of its operands?
bool passesNumbers(const onnx::NodeProto &node) {
  OpEffect effect = effectOf(node);
  return (node.op_type() != "Cast" || floatCastTo(node)) && effect != OpEffect::Tests &&
         effect != OpEffect::Finds && effect != OpEffect::Measures;
}

/// Finds values that are only moved before they are widened. The results of the graph are not.
class WidenedValues {
public:
  explicit WidenedValues(const onnx::GraphProto &graph) {
    for (const onnx::NodeProto &node : graph.node()) {
      for (const std::string &input : node.input())
        readers[input].push_back(&node);
      for (const onnx::AttributeProto &attribute : node.attribute())
        hasBranches |= attribute.has_g(); // which may read them too
    }
    for (const onnx::ValueInfoProto &output : graph.output())
      outputs.insert(output.name());
  }

  bool contain(llvm::StringRef value) const {
    auto found = readers.find(value);
    return !hasBranches && !outputs.contains(value) &&
           (found == readers.end() || llvm::all_of(found->second, [&](const onnx::NodeProto *node) {
              if (std::optional<DType> type = floatCastTo(*node))
                return !is16Bit(*type);
              bool isMoved = effectOf(*node) == OpEffect::Reshapes || node->op_type() == "Identity";
              return isMoved && node->input(0) == value && contain(node->output(0));
            }));
  }

private:
  llvm::StringMap<std::vector<const onnx::NodeProto *>> readers;
  llvm::StringSet<> outputs;
  bool hasBranches = false;
};

} // namespace

/// Casts of what depends on a parameter or on an input of floats. All others are computed at import, and
/// rounded.
void NoteFinder::noteRoundings() {
  llvm::StringSet<> computed;
  WidenedValues widened(graph);
  bool areKept = true;
  for (const std::string &name : order) {
    const Tensor &tensor = tensorOf(name);
    if (!weights.isParameter(name))
      continue;
    computed.insert(name);
    if (!tensor.isRead || !is16Bit(tensor.data.type))
      continue;
    if (!weights.isRounded(name) && !isFoldedName(name))
      return; // a model of 16 bits
    areKept = false;
  }
  for (const onnx::ValueInfoProto &input : graph.input())
    if (std::optional<DType> type = dtypeFromOnnx(input.type().tensor_type().elem_type());
        type && isFloat(*type) && !weights.known(input.name()))
      computed.insert(input.name());
  std::vector<std::string> nodes;
  std::string first; // the type
  bool areOfOneType = true;
  for (const onnx::NodeProto &node : graph.node()) {
    if (!passesNumbers(node) ||
        llvm::none_of(node.input(), [&](const auto &input) { return computed.contains(input); }))
      continue;
    computed.insert_range(node.output());
    std::optional<DType> type = floatCastTo(node);
    if (!type || !is16Bit(*type) || (areKept && widened.contain(node.output(0))))
      continue;
    if (nodes.empty())
      first = dtypeName(*type);
    areOfOneType &= dtypeName(*type) == first;
    nodes.push_back(node.name().empty() && node.output_size() ? node.output(0) : node.name());
  }
  if (!nodes.empty())
    noteBeside(
        oneOf(nodes, "node") + " casts to " + first +
            " (torch.autocast, x.half()), where PyTorch rounds and float16 may overflow: the "
            "program computes in one type, float32 unless --precision sets another, and does "
            "not round there; to train as PyTorch does, export without the " +
            (nodes.size() == 1 ? "cast" : "casts") + " and use --precision" +
            (areOfOneType ? " " + first : ""),
        {})
        .isOfForward = true;
}

} // namespace partita::importer
