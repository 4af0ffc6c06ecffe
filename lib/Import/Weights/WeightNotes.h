//===- WeightNotes.h - guesses about a file's weights -------------------------------*- C++ -*-===//
//
// A sentence for each guess that training depends on: what is done, when it would be wrong, and the
// option or the export that decides. Tensors that an option has decided are left out.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTNOTES_H
#define PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTNOTES_H

#include "lib/Import/Weights/Merged/MergedTensors.h"
#include "lib/Import/Weights/WeightTable.h"

namespace partita::importer {

/// Finds all notes on the weights of a file, after WeightDecider has decided what they are.
class NoteFinder {
public:
  explicit NoteFinder(const WeightTable &weights);

  /// Lists all kinds of notes.
  std::vector<WeightNote> run();

private:
  using Tensor = WeightTable::Tensor;
  /// Names of merged tensors, by the one that the file has kept.
  using Renamed = std::map<std::string, std::vector<std::string>>;
  static Renamed findRenamed(const onnx::GraphProto &graph);

  // Parameters that an exporter has merged or removed (AbsentNotes.cpp).
  void noteMergedNumbers();
  void noteRenamed();
  void noteReadByModules();
  void noteUndecided();
  void noteRemoved();
  void noteMadeBiases();
  void noteSeveral();
  void noteUnnamed();
  void noteDropped();
  // By the exporter's record.
  void noteContradicted();
  void noteUnreadable();
  void noteDoubted();
  void noteKeptParameters();
  void noteComputed();
  void noteOverlapping();
  void noteConcatenated();
  void noteStraightThrough(); // DetachNotes.cpp
  void noteDetached();
  void noteScaledByFrequency(); // CallNotes.cpp
  void noteRemovedAdditions();
  void noteUpdated();
  void noteFormulas(); // FormulaNotes.cpp
  // By values and structure.
  void noteTableCopies();
  void noteEqualMatrices();
  void noteEqualParameters();
  void noteScoreBiases();
  void noteLeadingOnes();
  // By names that TorchScript's exporter generates.
  void noteFolded();
  // Parameter or not, which TorchScript does not record (KindNotes.cpp).
  void noteSingles();
  void noteStatistics();
  void noteTablesOfSines();
  void noteMayBeBuffers();

  /// Later notes that ask isNoted leave out the tensors of this one.
  void note(std::string text, std::vector<std::string> tensors, bool isOfParameters = false);
  /// Later notes may be about the same tensors, which are parameters.
  WeightNote &noteBeside(std::string text, std::vector<std::string> tensors);
  bool isNoted(llvm::StringRef name) const { return noted.contains(name); }
  const Tensor &tensorOf(llvm::StringRef name) const { return *weights.known(name); }
  /// Is it trained, without an option that says so?
  bool isGuessed(const Tensor &tensor) const {
    return weights.isTrained(tensor) && !tensor.isDecided;
  }
  /// Is it a parameter, or a copy of one, that is not frozen?
  bool hasGradient(llvm::StringRef name) const {
    return weights.isParameter(name) && !weights.isUnreadConstant(name) && !weights.isFrozen(name);
  }
  /// Is it trained, so that another copy or slice of it would be trained independently?
  bool isTrainedApart(const Tensor &tensor) const {
    return weights.isTrained(tensor) && !tensor.isFrozen;
  }
  std::string unfolded() const;

  const WeightTable &weights;
  ModelFile &file;
  const onnx::GraphProto &graph;
  const Origins &origins;
  const Exporter exporter;
  const std::vector<std::string> &order;
  const Renamed renamed;      ///< by TorchScript's exporter
  const MergedTensors merged; ///< by dynamo's, by its record
  std::vector<WeightNote> notes;
  llvm::StringSet<> noted;         ///< tensors of `note`
  llvm::StringSet<> mergedNumbers; ///< tensors of noteMergedNumbers
};

/// "'a', 'b' and 3 more".
std::string listed(llvm::ArrayRef<std::string> names);
/// "tensor 'a'" or "tensor 'a', one of 3,", of what one note is about.
std::string oneOf(llvm::ArrayRef<std::string> names, llvm::StringRef what = "tensor");

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTNOTES_H
