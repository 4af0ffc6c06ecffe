//===- WeightNotes.cpp ------------------------------------------------------------------------===//

#include "lib/Import/Weights/WeightNotes.h"
#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/Buffers.h"
#include "lib/Import/Weights/EqualParameters.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace partita::importer {

std::string listed(llvm::ArrayRef<std::string> names) {
  constexpr size_t most = 4;
  std::string text;
  llvm::ArrayRef<std::string> shown = names.take_front(names.size() > most ? most - 1 : most);
  for (const auto &[i, name] : llvm::enumerate(shown))
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + quoted(name);
  size_t left = names.size() - shown.size();
  return text + (left ? " and " + std::to_string(left) + " more" : "");
}

std::string oneOf(llvm::ArrayRef<std::string> names, llvm::StringRef what) {
  std::string others = ", one of " + std::to_string(names.size()) + ",";
  return what.str() + " " + quoted(names.front()) + (names.size() > 1 ? others : "");
}

NoteFinder::NoteFinder(const WeightTable &weights)
    : weights(weights), file(weights.file), graph(weights.graph), origins(weights.origins),
      exporter(weights.exporter), order(weights.order),
      renamed(exporter == Exporter::TorchScript ? findRenamed(graph) : Renamed()),
      merged(findMerged(graph)) {}

std::vector<WeightNote> NoteFinder::run() {
  // In the order in which they are printed. Some leave out the tensors that `note` was called with before.
  // clang-format off
  static constexpr void (NoteFinder::*finders[])() = {
      &NoteFinder::noteMergedNumbers, // noteRenamed leaves these out too
      &NoteFinder::noteRenamed,
      &NoteFinder::noteReadByModules,
      &NoteFinder::noteUndecided,
      &NoteFinder::noteRemoved,
      &NoteFinder::noteMadeBiases,
      &NoteFinder::noteSeveral,
      &NoteFinder::noteUnnamed,
      &NoteFinder::noteDropped,
      &NoteFinder::noteContradicted,
      &NoteFinder::noteUnreadable,
      &NoteFinder::noteDoubted,
      &NoteFinder::noteKeptParameters,
      &NoteFinder::noteComputed,
      &NoteFinder::noteOverlapping,
      &NoteFinder::noteConcatenated,
      &NoteFinder::noteStraightThrough,
      &NoteFinder::noteDetached, // of parameters, of concatenations and of values: one search
      &NoteFinder::noteScaledByFrequency,
      &NoteFinder::noteRemovedAdditions,
      &NoteFinder::noteUpdated,
      &NoteFinder::noteFormulas, // both formulas: one search
      &NoteFinder::noteTableCopies,
      &NoteFinder::noteEqualMatrices,
      &NoteFinder::noteEqualParameters,
      &NoteFinder::noteScoreBiases,
      &NoteFinder::noteLeadingOnes,
      &NoteFinder::noteFolded,
      &NoteFinder::noteSingles,
      &NoteFinder::noteStatistics,
      &NoteFinder::noteTablesOfSines,
      &NoteFinder::noteMayBeBuffers,
  };
  // clang-format on
  for (auto find : finders)
    (this->*find)();
  return std::move(notes);
}

void NoteFinder::note(std::string text, std::vector<std::string> tensors, bool isOfParameters) {
  noted.insert_range(tensors);
  notes.push_back({std::move(text), std::move(tensors), /*isReported=*/false, isOfParameters});
}

WeightNote &NoteFinder::noteBeside(std::string text, std::vector<std::string> tensors) {
  notes.push_back(
      {std::move(text), std::move(tensors), /*isReported=*/false, /*isOfParameters=*/true});
  return notes.back();
}

/// How to export without folding, with the exporter that wrote the file; if unknown, with either.
std::string NoteFinder::unfolded() const {
  return exportUnfolded(exporter, llvm::any_of(order, isFoldedName));
}

/// What contradicts the record is not known.
void NoteFinder::noteContradicted() {
  std::vector<std::string> names;
  for (const std::string &name : origins.contradicted())
    if (const Tensor *tensor = weights.known(name);
        tensor && tensor->isRead && !tensor->isDecided && isFloat(tensor->data.type))
      names.push_back(name);
  bool isOne = names.size() == 1;
  if (!names.empty())
    note(std::string("the exporter's record contradicts itself on ") +
             (isOne ? "tensor " : "tensors ") + listed(names) +
             " (parameter, buffer or computed): whether " + (isOne ? "it is" : "they are") +
             " trained is decided by the graph's structure; use --trainable " +
             quoted(names.front()) + " or --freeze " + quoted(names.front()),
         names);
}

/// A record that cannot be read is not used.
void NoteFinder::noteUnreadable() {
  if (!origins.problem().empty())
    note("what the exporter recorded of the model's parameters cannot be read (" +
             origins.problem() + "): what is trained is decided by the graph's structure",
         {});
}

/// Constants by a record that does not account for some parameter.
void NoteFinder::noteDoubted() {
  std::vector<std::string> names;
  llvm::copy_if(weights.doubted, std::back_inserter(names),
                [&](const std::string &name) { return isGuessed(tensorOf(name)); });
  if (names.empty())
    return;
  std::string first = quoted(names.front());
  note(oneOf(names) +
           " is trained, although the exporter's record derives it from no parameter: the "
           "record does not account for parameter " +
           quoted(origins.unaccounted()) + ", which it may be; use --trainable " + first +
           " if it is, --freeze " + first + " if not",
       names);
}

/// Parameters by the exporter's record that look like buffers. Whether they have a gradient is not
/// recorded: those of Marian and Whisper have none.
void NoteFinder::noteKeptParameters() {
  std::vector<std::string> names;
  for (const std::string &name : order) {
    const Tensor &tensor = tensorOf(name);
    const Origin &origin = origins.of(name);
    bool isOwn = origin.kind == Origin::Parameter || origin.kind == Origin::Derived;
    if (isOwn && !tensor.isParameter && !tensor.isDecided && tensor.isRead &&
        weights.buffers.contains(name))
      names.push_back(name);
  }
  if (names.empty())
    return;
  std::string first = quoted(names.front());
  note(oneOf(names) +
           " is not trained: the file records a parameter, but its values are those of a fixed "
           "table (sines of positions, slopes, frequencies, a mask), and whether it has a "
           "gradient is not recorded; use --trainable " +
           first + " if it has",
       names);
}

/// Computed from parameters, other than by moving their elements: a product of weight_norm. Results of
/// the same operation share a note. A sum with a constant trains as its parameter does; `optimize`
/// warns if weight decay applies to the sum.
void NoteFinder::noteComputed() {
  llvm::MapVector<llvm::StringRef, std::vector<std::string>> byOperation;
  for (const std::string &name : order) {
    const Tensor &tensor = tensorOf(name);
    const Origin &origin = origins.of(name);
    if (origin.kind != Origin::Derived || !isGuessed(tensor) || weights.isMoved(tensor) ||
        weights.isShifted(name) ||
        (origin.lookedUp && origin.parameters.size() == 1 && !tensor.data.shape.empty() &&
         hasDistinctRuns(file, tensor.data, tensor.data.shape.back())))
      continue;
    byOperation[operationOf(computedName(name))].push_back(name);
  }
  for (auto &entry : byOperation) {
    std::vector<std::string> &names = entry.second;
    const Origin &origin = origins.of(names.front());
    bool isOne = origin.parameters.size() == 1;
    std::string parameters = listed(origin.parameters), first = quoted(names.front());
    note(oneOf(names) + " was folded from " + (isOne ? "parameter " : "parameters ") + parameters +
             " and is trained in " + (isOne ? "its" : "their") + " place; to train " + parameters +
             ", " + unfolded() + "; to keep it fixed, use --freeze " + first,
         names);
  }
}

/// Several tensors of one parameter that share elements: overlapping slices, several flips or
/// permutations, or tensors that contradict the file's record. Slices without a common element train as
/// the full parameter does.
void NoteFinder::noteOverlapping() {
  struct Overlap {
    std::string text; ///< of the first parameter
    int64_t parameters = 0;
    std::vector<std::string> tensors; ///< of all
  };
  llvm::MapVector<llvm::StringRef, Overlap> byCause;
  for (const auto &entry : weights.groups) {
    const auto &parameter = entry.first; // lambdas of C++17 capture no structured binding
    const auto &group = entry.second;
    if (group.size() < 2)
      continue;
    // If a group has the full parameter, every other member shares elements with it.
    bool hasFull = llvm::is_contained(group, parameter);
    std::vector<const TensorData *> members;
    for (const std::string &name : group)
      members.push_back(&tensorOf(name).data);
    std::vector<bool> overlap(group.size(), true), rearranged(group.size(), false);
    if (!hasFull) {
      overlap = findOverlaps(file, members);
      rearranged = findRearranged(file, members);
    }
    std::vector<std::string> apart;
    bool areSlices = true;
    for (const auto &[i, name] : llvm::enumerate(group)) {
      const Tensor &tensor = tensorOf(name);
      if (!(overlap[i] || rearranged[i]) || !isTrainedApart(tensor) || isNoted(name))
        continue;
      apart.push_back(name);
      areSlices &= !rearranged[i];
    }
    if (apart.size() < 2)
      continue;
    llvm::StringRef cause = hasFull     ? " all hold elements of "
                            : areSlices ? " are overlapping slices of "
                                        : " hold the same elements of ";
    Overlap &all = byCause[cause];
    if (all.parameters++ == 0)
      all.text = "tensors " + listed(apart) + cause.str() + quoted(parameter) +
                 (areSlices ? "" : " in different orders");
    llvm::append_range(all.tensors, apart);
  }
  for (const auto &entry : byCause) {
    const Overlap &all = entry.second;
    std::string others =
        std::to_string(all.parameters - 1) + " more parameter" + (all.parameters > 2 ? "s" : "");
    note(all.text + (all.parameters > 1 ? ", as others are of " + others + "," : "") +
             " and are trained independently; to train it as one, " + unfolded(),
         all.tensors, /*isOfParameters=*/true);
  }
}

/// Concatenations of several parameters, one of which is read elsewhere too.
void NoteFinder::noteConcatenated() {
  llvm::StringMap<int> concatenations; // that a parameter is in
  for (const std::string &name : order)
    if (const Tensor &tensor = tensorOf(name); weights.isMoved(tensor) && tensor.isRead)
      for (const std::string &parameter : origins.of(name).parameters)
        ++concatenations[parameter];
  std::vector<std::string> names;
  std::string firstShared;
  for (const std::string &name : order) {
    const Origin &origin = origins.of(name);
    const Tensor &tensor = tensorOf(name);
    if (origin.parameters.size() < 2 || !weights.isMoved(tensor) || !isTrainedApart(tensor))
      continue;
    auto shared = llvm::find_if(origin.parameters, [&](const std::string &parameter) {
      return weights.known(parameter) || weights.groups.count(parameter) ||
             concatenations[parameter] > 1;
    });
    if (shared == origin.parameters.end())
      continue;
    if (names.empty())
      firstShared = *shared;
    names.push_back(name);
  }
  if (!names.empty())
    note(oneOf(names) + " is a concatenation of " + listed(origins.of(names.front()).parameters) +
             ", and " + quoted(firstShared) +
             " is read elsewhere too: they are trained independently; " + unfolded(),
         names, /*isOfParameters=*/true);
}

/// Copies of tables under a name that may be the model's. (A name that the exporter generated shows that
/// it has computed the tensor from the table.) Other notes may be about the table.
void NoteFinder::noteTableCopies() {
  for (const WeightCopy &copy : weights.copies) {
    const Tensor &tensor = tensorOf(copy.name), &table = tensorOf(copy.table);
    if (!tensor.isRead || tensor.isDecided || table.isFrozen || isFoldedName(copy.name) ||
        isInnerName(copy.name) || origins.of(copy.name).kind != Origin::Unknown ||
        origins.of(copy.table).kind != Origin::Unknown)
      continue;
    noteBeside("tensors " + listed({copy.table, copy.name}) + " hold equal values" +
                   (copy.transposed ? ", one transposed," : "") +
                   " and are trained as one parameter; if the model has two, use --trainable " +
                   quoted(copy.name) + "; if it ties them, --tie " +
                   quoted(copy.table + "=" + copy.name) + " says so",
               {copy.table, copy.name});
  }
}

namespace {

/// What a note says of groups of equal tensors: the first group in words, and the options about it and, if
/// these are few, about the others.
struct EqualGroups {
  explicit EqualGroups(llvm::ArrayRef<std::vector<EqualMatrix>> groups,
                       llvm::function_ref<std::string(const std::string &)> nameOf) {
    for (const std::vector<EqualMatrix> &group : groups)
      for (const EqualMatrix &each : group)
        all.push_back(each.name);
    std::vector<std::string> first;
    bool isAnyTransposed = false;
    for (const EqualMatrix &each : groups.front()) {
      first.push_back(nameOf(each.name));
      isAnyTransposed |= each.transposed != groups.front().front().transposed;
    }
    what = listed(first) + " hold equal values";
    if (groups.size() > 1)
      what += " (one group of " + std::to_string(groups.size()) + ")";
    if (isAnyTransposed)
      what += first.size() == 2 ? ", one transposed," : ", some transposed,";
    constexpr size_t few = 4;
    bool areFew = all.size() - groups.size() <= few;
    for (const std::vector<EqualMatrix> &group : groups.take_front(areFew ? groups.size() : 1))
      for (const EqualMatrix &copy : llvm::ArrayRef(group).drop_front()) {
        std::string name = nameOf(copy.name);
        ties +=
            (ties.empty() ? "--tie " : " --tie ") + quoted(nameOf(group.front().name) + "=" + name);
        trainables += (trainables.empty() ? "--trainable " : " --trainable ") + quoted(name);
      }
  }

  std::vector<std::string> all; ///< of all groups
  std::string what, ties, trainables;
};

} // namespace

/// Equal matrices of which the file does not say whether they are one.
void NoteFinder::noteEqualMatrices() {
  std::vector<std::vector<EqualMatrix>> groups;
  for (std::vector<EqualMatrix> &group : findEqualMatrices(file, weights.tableCopies)) {
    llvm::erase_if(group, [&](const EqualMatrix &each) {
      const Tensor *tensor = weights.known(each.name);
      return !tensor || !isGuessed(*tensor) || origins.of(each.name).kind != Origin::Unknown;
    });
    if (group.size() > 1)
      groups.push_back(std::move(group));
  }
  if (groups.empty())
    return;
  EqualGroups equal(groups, [](const std::string &name) { return name; });
  note("tensors " + equal.what +
           " and are trained independently; if they are copies of one weight, " + unfolded() +
           ", or tie them by " + equal.ties,
       equal.all);
}

/// Equal parameters, by the record several ones.
void NoteFinder::noteEqualParameters() {
  std::vector<std::vector<EqualMatrix>> groups =
      EqualParameterFinder(weights, [&](const Tensor &tensor) {
        return isGuessed(tensor) && !isNoted(tensor.proto->name());
      }).take();
  if (groups.empty())
    return;
  EqualGroups equal(groups, [&](const std::string &name) {
    const OriginalParameter *original = weights.original(name);
    return original ? original->name : name;
  });
  note("parameters " + equal.what +
           " and are trained independently, because the file records them as separate ones; if the "
           "model shares their data (b.data = a.data), use " +
           equal.ties + "; if they only start equal, " + equal.trainables,
       equal.all);
}

/// Tensors with an element for every query and key.
void NoteFinder::noteScoreBiases() {
  std::vector<std::string> names = findScoreBiases(graph, weights.buffers);
  llvm::erase_if(names, [&](const std::string &name) {
    const Tensor *tensor = weights.known(name);
    return !tensor || !isGuessed(*tensor) || origins.of(name).kind == Origin::Parameter ||
           isNoted(name);
  });
  if (names.empty())
    return;
  note(oneOf(names) +
           " is added to the scores of attention, an element for every query and key: each element "
           "is trained; if it is a relative position bias, which an exporter has computed from a "
           "smaller table (perhaps with a mask in it), " +
           unfolded() + "; to keep it fixed, use --freeze " + quoted(names[0]),
       names);
}

/// A row of shape [1, n] that is added to a matmul's result, like BART's final_logits_bias: a layer's
/// bias would be a vector. Not if it is added to the scores of attention, as a bias for each key.
void NoteFinder::noteLeadingOnes() {
  llvm::StringSet<> scores;
  for (const onnx::NodeProto &node : graph.node())
    if (factsOf(node).distributes)
      scores.insert_range(node.input());
  std::vector<std::string> names;
  for (const std::string &name : order) {
    const Tensor &tensor = tensorOf(name);
    const Shape &shape = tensor.data.shape;
    bool isRow = shape.size() > 1 && shape.back() > 1 && tensor.data.count == shape.back();
    if (!isRow || !isGuessed(tensor) || origins.of(name).kind != Origin::Unknown ||
        tensor.uses.empty())
      continue;
    bool isBias = llvm::all_of(tensor.uses, [&](const auto &use) {
      if (!factsOf(*use.node).isSum() || use.node->input_size() != 2 ||
          use.node->output_size() != 1 || scores.contains(use.node->output(0)))
        return false;
      const onnx::NodeProto *maker = weights.makers.lookup(use.node->input(1 - use.operand));
      return maker && factsOf(*maker).isMatmul();
    });
    if (isBias)
      names.push_back(name);
  }
  if (names.empty())
    return;
  std::string first = quoted(names.front());
  note(oneOf(names) + " of shape " + shapeText(tensorOf(names.front()).data.shape) +
           " is added to a matmul's result but has more than one dimension, so it may be a "
           "buffer; it is trained. Use --freeze " +
           first + " if it is a buffer, --trainable " + first + " if not",
       names);
}

/// TorchScript's exporter names what it has folded after the operator that reads it.
void NoteFinder::noteFolded() {
  if (exporter == Exporter::Dynamo)
    return;
  std::vector<std::string> names, matrices;
  for (const std::string &name : order) {
    const Tensor &tensor = tensorOf(name);
    if (!isFoldedName(name) || !isGuessed(tensor) || isNoted(name))
      continue;
    bool isWeight = tensor.data.shape.size() == 2 && weights.isUsedAs(tensor, "MatMul", 1);
    (isWeight ? matrices : names).push_back(name); // weights of linear layers come last
  }
  names.insert(names.end(), matrices.begin(), matrices.end());
  if (names.empty())
    return;
  bool isOne = names.size() == 1;
  note((isOne ? "tensor " : "tensors ") + listed(names) +
           (isOne ? " was folded by the exporter and is" : " were folded by the exporter and are") +
           " trained as stored: right for transposed weights, wrong for products (weight_norm), "
           "overlapping slices and buffers; " +
           unfolded() + ", or use --trainable 'onnx::*' if all are weights",
       names);
}

} // namespace partita::importer
