//===- CallNotes.cpp - what dynamo's exporter leaves out, but records -------------------------===//
//
// Arguments of PyTorch's operations that ONNX lacks, additions that the exporter's optimizer takes for
// additions of zero, and the last step of forward(), which updates buffers.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/File/AtenOperations.h"
#include "lib/Import/File/ProgramValues.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "llvm/ADT/StringMap.h"

namespace partita::importer {

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse).
void NoteFinder::noteScaledByFrequency() {
  std::vector<std::string> tables;
  for (const onnx::NodeProto &node : graph.node()) {
    std::optional<ProgramCall> call = callOf(node);
    if (!call || call->operation != "embedding" || call->textAt(3) != "True" ||
        node.input_size() == 0 || llvm::is_contained(tables, node.input(0)))
      continue;
    if (hasGradient(node.input(0)))
      tables.push_back(node.input(0));
  }
  if (tables.empty())
    return;
  noteBeside("the model scales the gradient of " +
                 std::string(tables.size() == 1 ? "table " : "tables ") + listed(tables) +
                 " by how often a batch has each id (scale_grad_by_freq), which ONNX cannot "
                 "express: gradients are not scaled here",
             tables);
}

namespace {

/// A value of the program: "add", "add_3", "sub_1".
bool isSum(llvm::StringRef value) { return operationMaking(value).effect == AtenOperation::Shifts; }

/// Finds sums that a call names, but that no node makes: the node reads the summand instead.
class RemovedAdditions {
public:
  struct Removed {
    llvm::StringRef sum, reader;
  };

  RemovedAdditions(const onnx::GraphProto &graph,
                   llvm::function_ref<bool(llvm::StringRef)> isTrained)
      : graph(graph), program(graph) {
    for (const onnx::TensorProto &tensor : graph.initializer())
      if (!isTrained(tensor.name()))
        constants.insert(tensor.name()); // they are folded and merged
    for (const onnx::NodeProto &node : graph.node())
      for (const std::string &output : node.output())
        makers[output] = &node;
  }

  std::vector<Removed> find() const {
    std::vector<Removed> found;
    for (const onnx::NodeProto &node : graph.node()) {
      std::optional<ProgramCall> call = callOf(node);
      // Each argument is an operand: not in the midst of a decomposition. (One alone has a comma.)
      auto isThere = [](llvm::StringRef text) { return !text.empty(); };
      if (!call || llvm::count_if(call->texts, isThere) != node.input_size())
        continue;
      for (const ProgramCall::Argument &argument : program.missing(*call))
        if (argument.place < node.input_size() && isSum(argument.name) &&
            isSummand(node.input(argument.place)) &&
            llvm::none_of(found, [&](const Removed &each) { return each.sum == argument.name; }))
          found.push_back({argument.name, node.name()});
    }
    return found;
  }

private:
  /// Another sum may be an equal one, with which the exporter has merged it.
  bool isSummand(llvm::StringRef value) const {
    const onnx::NodeProto *maker = makers.lookup(value);
    std::optional<ProgramCall> call = maker ? callOf(*maker) : std::nullopt;
    return !constants.contains(value) && !program.isDiscrete(value) &&
           !(call && isSum(call->operation));
  }

  const onnx::GraphProto &graph;
  ProgramValues program;
  llvm::StringSet<> constants;
  llvm::StringMap<const onnx::NodeProto *> makers;
};

} // namespace

/// Of an epsilon, or of a parameter that starts at zero.
void NoteFinder::noteRemovedAdditions() {
  auto isTrained = [&](llvm::StringRef name) { return hasGradient(name); };
  std::vector<RemovedAdditions::Removed> removed = RemovedAdditions(graph, isTrained).find();
  if (removed.empty())
    return;
  std::string rest;
  if (removed.size() > 1)
    rest = ", one of " + std::to_string(removed.size()) + " that it has removed";
  noteBeside(
      "the exporter has removed an addition, " + quoted("%" + removed.front().sum.str()) +
          " of the exported program, which node " + quoted(removed.front().reader.str()) +
          " reads" + rest +
          ": it takes numbers up to 1e-8 for zero, so an epsilon, or a parameter that starts "
          "at zero, may be missing; " +
          exportUnoptimized.str(),
      {});
}

/// Such as the vectors of spectral_norm, or a moving average. The file has the model's first forward pass,
/// so every further one, in inference too, would begin with other values. A counter that nothing reads is
/// not in the file, and statistics of a BatchNorm are refused.
void NoteFinder::noteUpdated() {
  auto isStatistic = [](const Tensor &tensor) {
    return !tensor.uses.empty() && llvm::all_of(tensor.uses, [](const auto &use) {
      return factsOf(*use.node).keepsStatistics && factsOf(*use.node).fixes(use.operand);
    });
  };
  std::vector<std::string> names;
  bool areBuffers = true;
  for (const UpdatedTensor &each : updatedTensors(graph)) {
    bool isRead = llvm::any_of(order, [&](const std::string &name) {
      return tensorOf(name).isRead && !isStatistic(tensorOf(name)) &&
             (name == each.target || llvm::is_contained(origins.of(name).constants, each.target));
    });
    if (!isRead || llvm::is_contained(names, each.target))
      continue;
    names.push_back(each.target);
    areBuffers &= each.isBuffer;
  }
  if (names.empty())
    return;
  bool isOne = names.size() == 1;
  noteBeside("the model's forward pass updates " + std::string(areBuffers ? "buffer" : "tensor") +
                 (isOne ? " " : "s ") + listed(names) + ": here " +
                 (isOne ? "it keeps its value" : "they keep their values") +
                 " in the file, in training and in inference; if the model updates " +
                 (isOne ? "it" : "them") +
                 " in training mode only, export it in inference mode (model.eval())",
             {})
      .isOfForward = true;
}

} // namespace partita::importer
