//===- Exporter.h - what wrote a file, and how to export it otherwise ---------------*- C++ -*-===//
//
// PyTorch has two exporters. TorchScript's (dynamo=False) records nothing: what its names show is in
// ExporterNames.h. Dynamo's (dynamo=True) records the inputs of the exported program and where each value
// comes from (Origins.h). What import may conclude, and what it advises, depends on which one it was.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FILE_EXPORTER_H
#define PARTITA_LIB_IMPORT_FILE_EXPORTER_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::onnx {
class ModelProto;
} // namespace partita::onnx

namespace partita::importer {

class Origins;

enum class Exporter {
  TorchScript,  ///< PyTorch's, without a record (dynamo's too, where a tool removed all metadata)
  Dynamo,       ///< PyTorch's, with its record
  DynamoUnread, ///< PyTorch's, with a record that cannot be read
  Other         ///< another one, or a tool that calls itself the producer and kept no record
};

/// By the record, whatever tool has kept it, and else by the file's producer.
Exporter exporterOf(const onnx::ModelProto &model, const Origins &origins);

/// Does the file have the model's tensors without saying which are parameters?
inline bool omitsKinds(Exporter exporter) {
  return exporter == Exporter::TorchScript || exporter == Exporter::DynamoUnread;
}

//===------------------------------------------------------------------------------------------===//
// Advice, in the words of torch.onnx.export
//===------------------------------------------------------------------------------------------===//

constexpr llvm::StringLiteral exportByDynamo = "export the model with dynamo=True";
/// For dynamo's exporter, whose optimizer merges equal tensors and removes x + 0.
constexpr llvm::StringLiteral exportUnoptimized = "export the model with optimize=False";
constexpr llvm::StringLiteral exportUnmerged =
    "export the model with optimize=False, or with values that differ";
/// For TorchScript's exporter, which merges equal tensors whatever its options are.
constexpr llvm::StringLiteral exportUnmergedByDynamo =
    "export with dynamo=True, optimize=False, or with values that differ and load the real ones "
    "with --init";

/// How to export without folding; if the exporter is not known, for either.
/// `hasFoldedNames`: some tensor has a name that TorchScript's exporter gives to what it folds.
std::string exportUnfolded(Exporter exporter, bool hasFoldedNames);

/// "export it with dynamo=True and dynamic_shapes".
std::string exportDynamically(llvm::StringRef what);

/// How to declare dimensions that vary, after "declare it" or "declare them".
std::string inDynamicShapes(bool isOne);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FILE_EXPORTER_H
