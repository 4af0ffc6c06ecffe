//===- RecordedTensors.h - the record's parameters against the file's tensors -------*- C++ -*-===//
//
// The record of a dynamo export lists the inputs of the exported program that are parameters or buffers:
// their names in the program ("p_second_weight") and in the model ("second.weight", the *target*). The
// file has a tensor for most of them, either under the target's name or folded ("val_0", a transpose). A
// target of which it has neither is *absent*: removed, or merged with an equal one.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_MERGED_RECORDEDTENSORS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_MERGED_RECORDEDTENSORS_H

#include "lib/Import/File/Origins.h"

namespace partita::importer {

class RecordedTensors {
public:
  /// Names lie in `graph`, which must outlive it.
  explicit RecordedTensors(const onnx::GraphProto &graph);

  /// Does the file have a valid record?
  bool known() const { return isKnown; }

  // The model's tensors.
  /// By the name of an input of the program; empty if it is none of them.
  llvm::StringRef targetOf(llvm::StringRef input) const { return targets.lookup(input); }
  llvm::ArrayRef<llvm::StringRef> parameters() const { return parameterTargets; }
  llvm::ArrayRef<llvm::StringRef> buffers() const { return bufferTargets; }
  bool isParameter(llvm::StringRef target) const { return origins.isParameter(target); }
  bool isAbsent(llvm::StringRef target) const { return absent.contains(target); }
  /// Is it, or a value of that name, among those that some tensor of the file is folded from?
  bool isFolded(llvm::StringRef target) const { return folded.contains(target); }

  // The file's tensors.
  bool hasTensor(llvm::StringRef name) const { return names.contains(name); }
  /// The target that a tensor is, or comes from alone.
  std::optional<llvm::StringRef> targetIn(llvm::StringRef tensor) const;
  /// Is it a tensor of floats that is of no single target?
  bool isNumbers(llvm::StringRef tensor) const { return numbers.contains(tensor); }
  /// What a folded value is computed from, by its record.
  std::optional<std::vector<std::string>> sourcesOf(llvm::StringRef value) const {
    return parsePythonList(records.lookup(value));
  }

private:
  void readInputs(llvm::StringRef signature);
  void readTensors(const onnx::GraphProto &graph);

  Origins origins;
  bool isKnown = false;
  llvm::StringMap<llvm::StringRef> targets; ///< by input of the program
  std::vector<llvm::StringRef> parameterTargets, bufferTargets;
  llvm::StringSet<> absent;
  llvm::StringSet<> folded;             ///< values that tensors are computed from
  llvm::StringSet<> names;              ///< of the file's tensors
  llvm::StringMap<std::string> sources; ///< targets by tensor
  llvm::StringMap<std::string> records; ///< of what a value is computed from
  llvm::StringSet<> numbers;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_MERGED_RECORDEDTENSORS_H
