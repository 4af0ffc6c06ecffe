//===- LostNotes.cpp - parameters that the file does not hold as such -------------------------===//
//
// Exporters merge equal tensors, remove biases of zeros and fold one parameter into another.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Weights/SharedWeights.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "partita/Import/MergedTensors.h"
#include "llvm/Support/Format.h"

namespace partita::importer {

/// By values: one number throughout, and read more often than any matrix. They remain what other
/// notes may be about.
void NoteFinder::noteMerged() {
  std::vector<SharedWeight> shared = findShared(file, weights.bufferNames());
  llvm::erase_if(shared, [](const SharedWeight &each) { return !each.mergedValue; });
  WeightNote note;
  note.isReported = note.isOfParameters = true;
  for (const SharedWeight &each : shared)
    note.tensors.push_back(each.name);
  bool isGuess = llvm::any_of(note.tensors, [&](const std::string &name) {
    return weights.isParameter(name) && !weights.isFrozen(name) && !weights.isHeld(name);
  });
  if (!isGuess)
    return;
  std::string rest = shared.size() > 1 ? ", as " + std::to_string(shared.size() - 1) +
                                             " more are (--report lists them)"
                                       : "";
  llvm::raw_string_ostream(note.text)
      << "tensor " << quoted(shared[0].name) << ", all "
      << llvm::format("%g", *shared[0].mergedValue) << ", is read by " << shared[0].uses << " nodes"
      << rest
      << ": exporters merge equal tensors, so several parameters may have become this one and are "
         "trained as one; export with distinct values in every tensor, and load the real ones with "
         "--init";
  notes.push_back(std::move(note));
}

/// By the exporter's record.
void NoteFinder::noteLost() {
  MergedTensors merged = findMerged(graph);
  constexpr llvm::StringLiteral unoptimized =
      "; export the model with optimize=False, or with values that differ";
  auto text = [&](const std::vector<std::string> &names, llvm::StringRef one,
                  llvm::StringRef several) {
    return (names.size() == 1 ? "parameter " : "parameters ") + listed(names) +
           (names.size() == 1 ? one : several).str() + unoptimized.str();
  };
  if (!merged.undecided.empty())
    note(text(merged.undecided,
              " is no tensor of the file: the exporter has merged it with an equal one, or folded "
              "it into another (a BatchNorm into a Conv), and what it has made is trained as one",
              " are no tensors of the file: the exporter has merged them with equal ones, or "
              "folded them into others (a BatchNorm into a Conv), and what it has made is trained "
              "as one"),
         {});
  if (!merged.removed.empty())
    note(text(merged.removed,
              " is no tensor of the file: the exporter has removed it, as it does with "
              "biases of zeros, and it is not trained",
              " are no tensors of the file: the exporter has removed them, as it does "
              "with biases of zeros, and they are not trained"),
         {});
}

} // namespace partita::importer
