//===- ProgramValues.h - the values that a dynamo export's record names -------------*- C++ -*-===//
//
// Dynamo's exporter records with each node the call of the exported program that it was made for, and so
// the values that the call reads. One that the file lacks shows what the exporter has removed: x * 1,
// x + 0 or detach().
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FILE_PROGRAMVALUES_H
#define PARTITA_LIB_IMPORT_FILE_PROGRAMVALUES_H

#include "lib/Import/File/ExportRecord.h"
#include "onnx.pb.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace partita::importer {

class ProgramValues {
public:
  explicit ProgramValues(const onnx::GraphProto &graph);

  /// The arguments of a call that no input, tensor or node of the file is, nor a tensor of the model.
  llvm::SmallVector<ProgramCall::Argument> missing(const ProgramCall &call) const;
  /// The model's tensor that is an input of the program under this name; empty if none is.
  llvm::StringRef targetOf(llvm::StringRef value) const { return targets.lookup(value); }
  /// Does the file declare a type for it that has no gradient?
  bool isDiscrete(llvm::StringRef value) const { return discrete.contains(value); }

private:
  llvm::StringMap<llvm::StringRef> targets;
  llvm::StringSet<> known; ///< the file's inputs, tensors and results of nodes
  llvm::StringSet<> discrete;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FILE_PROGRAMVALUES_H
