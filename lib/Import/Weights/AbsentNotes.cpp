//===- AbsentNotes.cpp - parameters that the file does not hold as such -----------------------===//
//
// Exporters merge equal tensors, remove biases of zeros and fold one parameter into another.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/Weights/DroppedParameters.h"
#include "lib/Import/Weights/SharedWeights.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "llvm/Support/Format.h"

namespace partita::importer {

/// By values: all elements are one number, and the tensor is read more often than any matrix. A record
/// that finds every parameter in the file shows that none was merged. Other notes may be about these
/// tensors too.
void NoteFinder::noteMergedNumbers() {
  std::vector<SharedWeight> shared = findShared(file, weights.buffers);
  bool isComplete = exporter == Exporter::Dynamo && origins.unaccounted().empty();
  llvm::erase_if(shared, [&](const SharedWeight &each) {
    return !each.mergedNumber || (isComplete && origins.of(each.name).kind == Origin::Parameter);
  });
  WeightNote note;
  note.isReported = note.isOfParameters = true;
  for (const SharedWeight &each : shared)
    note.tensors.push_back(each.name);
  bool isGuess =
      llvm::any_of(note.tensors, [&](const std::string &name) { return hasGradient(name); });
  if (!isGuess)
    return;
  std::string rest = shared.size() > 1 ? ", as " + std::to_string(shared.size() - 1) +
                                             " more are (--report lists them)"
                                       : "";
  llvm::raw_string_ostream(note.text)
      << "tensor " << quoted(shared[0].name) << ", all "
      << llvm::format("%g", *shared[0].mergedNumber) << ", is read by " << shared[0].uses
      << " nodes" << rest
      << ": exporters merge equal tensors, so several parameters may have become this one and are "
         "trained as one; export with distinct values in every tensor, and load the real ones with "
         "--init";
  mergedNumbers.insert_range(note.tensors);
  notes.push_back(std::move(note));
}

/// Tensors that TorchScript's exporter has merged, by the one that it has kept: each leaves an Identity
/// under its name (another operator that passes a tensor on is the model's own). Tied parameters are one
/// tensor from the start.
NoteFinder::Renamed NoteFinder::findRenamed(const onnx::GraphProto &graph) {
  llvm::StringSet<> tensors, read, outputs;
  for (const onnx::TensorProto &tensor : graph.initializer())
    tensors.insert(tensor.name());
  for (const onnx::NodeProto &node : graph.node())
    read.insert_range(node.input());
  for (const onnx::ValueInfoProto &output : graph.output())
    outputs.insert(output.name());
  Renamed renamed;
  for (const onnx::NodeProto &node : graph.node())
    if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1 &&
        tensors.contains(node.input(0)) && read.contains(node.output(0)) &&
        !outputs.contains(node.output(0)))
      renamed[node.input(0)].push_back(node.output(0));
  return renamed;
}

/// By the names that the merged tensors have in the model.
void NoteFinder::noteRenamed() {
  std::vector<std::string> gone, all;
  for (const auto &[kept, others] : renamed) {
    const Tensor *tensor = weights.known(kept);
    if (!tensor || !isModelName(kept) || !isTrainedApart(*tensor) || mergedNumbers.contains(kept))
      continue;
    size_t before = gone.size();
    llvm::copy_if(others, std::back_inserter(gone), isModelName);
    if (gone.size() > before)
      all.push_back(kept);
  }
  if (gone.empty())
    return;
  bool isOne = gone.size() == 1;
  std::string first = gone.front();
  llvm::sort(gone);
  std::string kept = quoted(all.front());
  noteBeside((isOne ? "tensor " + quoted(first) +
                          " of the model is not in the file: the exporter has merged it with " +
                          kept + ", which equals it, and both are trained as one"
                    : "tensors " + listed(gone) +
                          " of the model are not in the file: the exporter has merged them with "
                          "equal ones (" +
                          quoted(first) + " with " + kept +
                          "), and what it has merged is trained as one") +
                 "; " + exportUnmergedByDynamo.str(),
             std::move(all));
}

/// By the modules that read them, if they were merged after folding. (Calling one module again also
/// folds its weight again.)
void NoteFinder::noteReadByModules() {
  std::vector<std::string> tensors;
  std::string nodes;
  for (const auto &[kept, others] : renamed) {
    const Tensor *tensor = weights.known(kept);
    if (!tensor || !isFoldedName(kept) || !isTrainedApart(*tensor) || tensor->uses.empty())
      continue;
    const onnx::NodeProto &first = *tensor->uses.front().node;
    auto other = llvm::find_if(tensor->uses, [&](const auto &use) {
      return use.node->op_type() == first.op_type() &&
             areOfNumberedModules(first.name(), use.node->name());
    });
    if (other == tensor->uses.end())
      continue;
    if (nodes.empty())
      nodes = quoted(first.name()) + " and " + quoted(other->node->name());
    tensors.push_back(kept);
  }
  if (tensors.empty())
    return;
  std::string rest =
      tensors.size() > 1 ? ", as " + std::to_string(tensors.size() - 1) + " more are" : "";
  noteBeside("tensor " + quoted(tensors.front()) + " is read by " + nodes +
                 ", nodes of different modules" + rest +
                 ": the exporter merges equal weights, and they are trained as one; if the model "
                 "does not tie them, " +
                 exportUnmergedByDynamo.str(),
             tensors);
}

/// "parameter 'a' ONE; export ..." or "parameters 'a' and 'b' SEVERAL; export ...".
static std::string absent(llvm::StringRef what, const std::vector<std::string> &names,
                          llvm::StringRef one, llvm::StringRef several) {
  return what.str() + (names.size() == 1 ? " " : "s ") + listed(names) +
         (names.size() == 1 ? one : several).str() + "; " + exportUnmerged.str();
}

/// By the exporter's record. A parameter may have been merged with a constant: Marian's two tables of
/// positions.
void NoteFinder::noteUndecided() {
  std::vector<std::string> parameters, buffers;
  for (const MergedTensors::Undecided &each : merged.undecided)
    if (llvm::any_of(each.tensors, [&](const std::string &name) {
          const Tensor *tensor = weights.known(name);
          return !tensor || isTrainedApart(*tensor);
        }))
      (each.isBuffer ? buffers : parameters).push_back(each.target);
  for (bool areBuffers : {false, true})
    if (const auto &undecided = areBuffers ? buffers : parameters; !undecided.empty())
      note(absent(areBuffers ? "buffer" : "parameter", undecided,
                  " is not a tensor of the file: the exporter has merged it with an equal one, or "
                  "folded it into another (a BatchNorm into a Conv), and what it has made is "
                  "trained as one",
                  " are not tensors of the file: the exporter has merged them with equal ones, or "
                  "folded them into others (a BatchNorm into a Conv), and what it has made is "
                  "trained as one"),
           {});
}

/// By the exporter's record.
void NoteFinder::noteRemoved() {
  if (!merged.removed.empty())
    note(absent("parameter", merged.removed,
                " is not a tensor of the file: the exporter has removed it, as it does with "
                "biases of zeros, and it is not trained",
                " are not tensors of the file: the exporter has removed them, as it does "
                "with biases of zeros, and they are not trained"),
         {});
}

/// Layers into which the exporter has folded what follows them.
void NoteFinder::noteMadeBiases() {
  std::vector<std::string> made;
  llvm::copy_if(weights.madeBiases, std::back_inserter(made),
                [&](const std::string &name) { return isTrainedApart(tensorOf(name)); });
  if (made.empty())
    return;
  note(
      oneOf(made, "bias") +
          " is not a parameter of the model: the exporter has folded what follows a layer into it (a "
          "BatchNorm into a Conv), and its weight and bias are trained in place of the model's "
          "parameters; " +
          exportUnoptimized.str(),
      made);
}

/// Tensors that may have been computed from several equal parameters, or be a parameter and what was
/// computed from others.
void NoteFinder::noteSeveral() {
  auto apart = llvm::find_if(merged.several, [&](const auto &each) {
    const Tensor *tensor = weights.known(each.tensor);
    return tensor && isTrainedApart(*tensor);
  });
  if (apart == merged.several.end())
    return;
  bool areBuffers = merged.nowhere.empty();
  const std::vector<std::string> &nowhere = areBuffers ? merged.nowhereBuffers : merged.nowhere;
  bool isOne = nowhere.size() == 1;
  noteBeside("tensor " + quoted(apart->tensor) + " is read as " + quoted(apart->first) +
                 " and as " + quoted(apart->second) + " of the exported program, and " +
                 (areBuffers ? "buffer" : "parameter") + (isOne ? " " : "s ") + listed(nowhere) +
                 (isOne ? " is not a tensor" : " are not tensors") +
                 " of the file: the exporter may have merged equal " +
                 (areBuffers ? "tensors" : "parameters") + ", which are then trained as one; " +
                 exportUnmerged.str(),
             {apart->tensor});
}

/// Parameters that may also be constants inside an operation, such as the 0.5 of a GELU.
void NoteFinder::noteUnnamed() {
  std::vector<const MergedTensors::Unnamed *> apart;
  std::vector<std::string> tensors;
  for (const MergedTensors::Unnamed &each : merged.unnamed)
    if (const Tensor *tensor = weights.known(each.tensor); tensor && isTrainedApart(*tensor)) {
      apart.push_back(&each);
      tensors.push_back(each.tensor);
    }
  if (apart.empty())
    return;
  const MergedTensors::Unnamed &first = *apart.front();
  noteBeside(oneOf(tensors, "parameter") + " is read by node " + quoted(first.node) +
                 ", whose operation in the exported program (" + quoted(first.operation) +
                 ") does not read it: the exporter may have merged a constant with it, and it gets "
                 "a gradient from there too; " +
                 exportUnmerged.str(),
             tensors);
}

/// Scales of 1 and shifts of 0 without dimensions.
void NoteFinder::noteDropped() {
  DroppedParameters dropped = findDropped(graph, origins, merged.nowhere);
  if (dropped.parameters.empty())
    return;
  bool isOne = dropped.parameters.size() == 1;
  note((isOne ? "parameter " : "parameters ") + listed(dropped.parameters) +
           (isOne
                ? " is not a tensor of the file and is not trained: the model does not use it"
                : " are not tensors of the file and are not trained: the model does not use them") +
           ", or the exporter has removed " + (isOne ? "the operation" : "the operations") +
           " with " + (isOne ? "it" : "them") + " (such as " + quoted(dropped.operation) +
           "), as it does with x * 1 and x + 0; if the model uses " + (isOne ? "it" : "them") +
           ", " + exportUnmerged.str(),
       {});
}

} // namespace partita::importer
