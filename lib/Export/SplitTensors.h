//===- SplitTensors.h - tensors that import has split off others --------------------*- C++ -*-===//
//
// A model file may have one tensor for several parameters that were equal when it was exported
// (lib/Import/Weights/Merged/MergedTensors.h). After training they differ: the trained file has a
// tensor for each, which their nodes read, as if the exporter had not merged them.
//
//===------------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_EXPORT_SPLITTENSORS_H
#define PARTITA_LIB_EXPORT_SPLITTENSORS_H

#include "partita/Import/TensorsToSplit.h"
#include <map>

namespace partita {

class SplitTensors {
public:
  /// Finds the tensors that import splits in the file `model`.
  explicit SplitTensors(llvm::StringRef model);

  /// Writes a node's message with the names that it now reads to `to`. Returns false if nothing
  /// changes.
  bool rewire(int node, llvm::StringRef message, std::string &to) const;
  llvm::ArrayRef<importer::MergedTensor> tensors() const { return merged; }

private:
  std::vector<importer::MergedTensor> merged;
  std::map<int, std::map<int, llvm::StringRef>> inputs; ///< by node and operand
};

/// Renames a TensorProto's message, with or without its values.
std::string renameTensor(llvm::StringRef message, llvm::StringRef name);
/// Renames a ValueInfoProto's message, with the record of the tensor's origin.
std::string renameValue(llvm::StringRef message, const importer::MergedTensor &tensor);
/// Returns the name in a ValueInfoProto's message.
llvm::StringRef nameOfValue(llvm::StringRef message);

} // namespace partita

#endif // PARTITA_LIB_EXPORT_SPLITTENSORS_H
