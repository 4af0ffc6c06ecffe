//===- SplitTensors.h - tensors that import has split off others --------------------*- C++ -*-===//
//
// A model's file may hold one tensor for several parameters that were equal when it was exported
// (lib/Import/Weights/Merged/MergedTensors.h). Trained, they differ: the trained file has a tensor for each, and
// their nodes read it, as if the exporter had not merged them.
//
//===------------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_EXPORT_SPLITTENSORS_H
#define PARTITA_LIB_EXPORT_SPLITTENSORS_H

#include "partita/Import/MergedTensors.h"
#include <map>

namespace partita {

class SplitTensors {
public:
  /// Of the file in `model`, as import splits them.
  explicit SplitTensors(llvm::StringRef model);

  /// A node's message with the names that it now reads, in `to`. False if it stays.
  bool rewire(int node, llvm::StringRef message, std::string &to) const;
  llvm::ArrayRef<importer::MergedTensor> tensors() const { return merged; }

private:
  std::vector<importer::MergedTensor> merged;
  std::map<int, std::map<int, llvm::StringRef>> inputs; ///< by node and operand
};

/// A TensorProto's message, or all of it but its values, under another name.
std::string renameTensor(llvm::StringRef message, llvm::StringRef name);
/// A ValueInfoProto's message, for a tensor with another name and record of what it comes from.
std::string renameValue(llvm::StringRef message, const importer::MergedTensor &tensor);
/// The name in a ValueInfoProto's message.
llvm::StringRef nameOfValue(llvm::StringRef message);

} // namespace partita

#endif // PARTITA_LIB_EXPORT_SPLITTENSORS_H
