//===- WeightNotes.cpp - what had to be guessed of a file's weights ---------------------------===//
//
// A sentence for each guess on which training depends: what is done, when it would be wrong, and the
// option or the export that decides. What an option has decided already is left out.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Weights/WeightNotes.h"
#include "lib/Import/Weights/Buffers.h"
#include "partita/Import/MergedTensors.h"

using namespace mlir;

namespace partita::importer {

static constexpr llvm::StringLiteral unfolded =
    "export the model without folding constants (torch.onnx.export: "
    "do_constant_folding=False, or with dynamo optimize=False)";

std::string listed(llvm::ArrayRef<std::string> names) {
  constexpr size_t most = 4;
  std::string text;
  llvm::ArrayRef<std::string> shown = names.take_front(names.size() > most ? most - 1 : most);
  for (const auto &[i, name] : llvm::enumerate(shown))
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + quoted(name);
  size_t left = names.size() - shown.size();
  return text + (left ? " and " + std::to_string(left) + " more" : "");
}

void Weights::note(std::string text, std::vector<std::string> tensors) {
  toldOf.insert_range(tensors);
  told.push_back({std::move(text), std::move(tensors)});
}

void Weights::writeNotes() {
  if (!origins.problem().empty())
    note("what the exporter recorded of the model's parameters cannot be read (" +
             origins.problem() + "): what is trained is decided by the graph's structure",
         {});
  noteDoubted();
  noteComputed();
  noteApart();
  noteRepeated();
  noteBiases();
  noteLeadingOnes();
  noteNameless();
}

/// Constants by a record that has lost a parameter.
void Weights::noteDoubted() {
  for (const std::string &name : doubted) {
    const Tensor &tensor = *known(name);
    if (!isTrained(tensor) || tensor.isDecided)
      continue;
    note("tensor " + quoted(name) +
             " comes from no parameter by the exporter's record, which has lost " +
             quoted(origins.lost()) + ": it is trained; --trainable " + quoted(name) +
             " says that it is a parameter, --freeze " + quoted(name) + " that it is none",
         {name});
  }
}

/// Computed from parameters, and not by moving their elements: a product of weight_norm.
void Weights::noteComputed() {
  for (const std::string &name : order) {
    const Tensor &tensor = *known(name);
    const Origin &origin = origins.of(name);
    if (origin.kind != Origin::Derived || !isTrained(tensor) || tensor.isDecided ||
        isMoved(tensor) ||
        (origin.lookedUp && origin.parameters.size() == 1 && hasDistinctRows(file, tensor.data)))
      continue;
    bool isOne = origin.parameters.size() == 1;
    note("tensor " + quoted(name) + " is computed from " + listed(origin.parameters) +
             " and trained in " + (isOne ? "its" : "their") + " place; to train " +
             (isOne ? quoted(origin.parameters.front()) : "these") + ", " + unfolded.str() +
             ", or keep it as it is by --freeze " + quoted(name),
         {name});
  }
}

/// Of one parameter, and not the same elements: slices that overlap, or what contradicts the file's
/// record. Slices without a common element are trained as the whole is.
void Weights::noteApart() {
  for (const auto &entry : groups) {
    const auto &parameter = entry.first; // lambdas of C++17 capture no structured binding
    const auto &group = entry.second;
    if (group.size() < 2)
      continue;
    // What a group with the whole parameter holds besides has elements of that.
    bool hasWhole = llvm::is_contained(group, parameter);
    std::vector<const TensorData *> members;
    for (const std::string &name : group)
      members.push_back(&known(name)->data);
    std::vector<bool> overlap(group.size(), true);
    if (!hasWhole)
      overlap = findOverlaps(file, members);
    std::vector<std::string> apart;
    for (const auto &[i, name] : llvm::enumerate(group)) {
      const Tensor &tensor = *known(name);
      if (overlap[i] && isTrained(tensor) && !tensor.isDecided && !isNoted(name))
        apart.push_back(name);
    }
    if (apart.size() > 1)
      note("tensors " + listed(apart) + " all come from " + quoted(parameter) +
               ", with common elements: they are trained apart; to train it as one, " +
               unfolded.str(),
           apart);
  }
  for (const std::string &name : order) { // a concatenation of what is used elsewhere too
    const Origin &origin = origins.of(name);
    const Tensor &tensor = *known(name);
    if (origin.parameters.size() < 2 || !isMoved(tensor) || !isTrained(tensor) || tensor.isDecided)
      continue;
    auto shared = llvm::find_if(origin.parameters, [&](const std::string &parameter) {
      return known(parameter) || groups.count(parameter);
    });
    if (shared != origin.parameters.end())
      note("tensor " + quoted(name) + " is put together from " + listed(origin.parameters) +
               ", and " + quoted(*shared) + " is read elsewhere too: they are trained apart; " +
               unfolded.str(),
           {name});
  }
}

/// Equal matrices of which the file does not say whether they are one.
void Weights::noteRepeated() {
  std::vector<std::vector<std::string>> repeated;
  for (std::vector<std::string> &group : findRepeated(file)) {
    llvm::erase_if(group, [&](const std::string &name) {
      const Tensor *tensor = known(name);
      return !tensor || !isTrained(*tensor) || tensor->isDecided ||
             origins.of(name).kind != Origin::Unknown;
    });
    if (group.size() > 1)
      repeated.push_back(std::move(group));
  }
  if (repeated.empty())
    return;
  std::string others =
      repeated.size() < 2 ? "" : " (one group of " + std::to_string(repeated.size()) + ")";
  std::vector<std::string> all;
  for (const std::vector<std::string> &group : repeated)
    all.insert(all.end(), group.begin(), group.end());
  note("tensors " + listed(repeated[0]) + " are equal, element by element" + others +
           ": they are trained apart; if they are one weight, which an exporter has computed for "
           "each of its uses, " +
           unfolded.str() + ", or tie them by --tie " +
           quoted(repeated[0][0] + "=" + repeated[0][1]),
       std::move(all));
}

/// Elements for every query and key.
void Weights::noteBiases() {
  std::vector<std::string> names = findScoreBiases(graph, file);
  llvm::erase_if(names, [&](const std::string &name) {
    const Tensor *tensor = known(name);
    return !tensor || !isTrained(*tensor) || tensor->isDecided ||
           origins.of(name).kind == Origin::Parameter || isNoted(name);
  });
  if (names.empty())
    return;
  std::string others = names.size() < 2 ? "" : ", one of " + std::to_string(names.size()) + ",";
  note("tensor " + quoted(names[0]) + others +
           " is added to the scores of attention, an element for every query and key: each element "
           "is trained; if it is a relative position bias, which an exporter has computed from a "
           "smaller table (perhaps with a mask in it), " +
           unfolded.str() + ", or keep it as it is by --freeze " + quoted(names[0]),
       names);
}

/// A row that is added to a product, as BART's final_logits_bias is: a layer's bias is a vector. Not
/// to the scores of attention, where it is a bias for each key.
void Weights::noteLeadingOnes() {
  llvm::StringSet<> scores;
  for (const onnx::NodeProto &node : graph.node())
    if (node.op_type() == "Softmax")
      scores.insert_range(node.input());
  for (const std::string &name : order) {
    const Tensor &tensor = *known(name);
    const Shape &shape = tensor.data.shape;
    bool isRow = shape.size() > 1 && shape.back() > 1 && tensor.data.count == shape.back();
    if (!isRow || !isTrained(tensor) || tensor.isDecided ||
        origins.of(name).kind != Origin::Unknown || tensor.uses.empty())
      continue;
    bool isBias = llvm::all_of(tensor.uses, [&](const Use &use) {
      if (use.node->op_type() != "Add" || use.node->input_size() != 2 ||
          use.node->output_size() != 1 || scores.contains(use.node->output(0)))
        return false;
      const onnx::NodeProto *maker = makers.lookup(use.node->input(1 - use.operand));
      return maker && (maker->op_type() == "MatMul" || maker->op_type() == "Gemm");
    });
    if (isBias)
      note("tensor " + quoted(name) + " of shape " + shapeText(shape) +
               " is added to a product, but is no vector as a layer's bias is: it is trained; "
               "--trainable " +
               quoted(name) + " says that it is a parameter, --freeze " + quoted(name) +
               " that it is a buffer",
           {name});
  }
}

std::vector<WeightNote> noteLost(const onnx::GraphProto &graph) {
  MergedTensors merged = findMerged(graph);
  constexpr llvm::StringLiteral unoptimized =
      "; export the model with optimize=False, or with values that differ";
  auto text = [&](const std::vector<std::string> &names, llvm::StringRef one,
                  llvm::StringRef several) {
    return (names.size() == 1 ? "parameter " : "parameters ") + listed(names) +
           (names.size() == 1 ? one : several).str() + unoptimized.str();
  };
  std::vector<WeightNote> notes;
  if (!merged.undecided.empty())
    notes.push_back({text(merged.undecided,
                          " is no tensor of the file, as the exporter has merged it with an equal "
                          "one: both are trained as one",
                          " are no tensors of the file, as the exporter has merged them with equal "
                          "ones: what was merged is trained as one"),
                     {}});
  if (!merged.removed.empty())
    notes.push_back({text(merged.removed,
                          " is no tensor of the file: the exporter has removed it, as it does with "
                          "biases of zeros, and it is not trained",
                          " are no tensors of the file: the exporter has removed them, as it does "
                          "with biases of zeros, and they are not trained"),
                     {}});
  return notes;
}

/// TorchScript's exporter calls what it has folded after the operator that reads it.
void Weights::noteNameless() {
  if (origins.known())
    return;
  std::vector<std::string> names, matrices;
  for (const std::string &name : order) {
    const Tensor &tensor = *known(name);
    if (!llvm::StringRef(name).starts_with("onnx::") || !isTrained(tensor) || tensor.isDecided ||
        isNoted(name))
      continue;
    bool isWeight = tensor.data.shape.size() == 2 && isUsedAs(tensor, "MatMul", 1);
    (isWeight ? matrices : names).push_back(name); // what is no linear layer's weight first
  }
  names.insert(names.end(), matrices.begin(), matrices.end());
  if (names.empty())
    return;
  bool isOne = names.size() == 1;
  note((isOne ? "tensor " : "tensors ") + listed(names) + (isOne ? " has a name" : " have names") +
           " that the exporter made when it folded constants: what was computed is trained as it "
           "stands, which is right for transposed weights, and wrong for products (weight_norm), "
           "slices that overlap and buffers; " +
           unfolded.str() + ", or say that all are weights by --trainable 'onnx::*'",
       std::move(names));
}

} // namespace partita::importer
