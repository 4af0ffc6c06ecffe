//===- ExporterNames.h - names that PyTorch's exporters generate --------------------*- C++ -*-===//
//
// Both exporters, TorchScript's and dynamo's, generate names for what they have computed: what import
// concludes from such a name is here. (AtenOperations.h has the operations that names begin with.)
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FILE_EXPORTERNAMES_H
#define PARTITA_LIB_IMPORT_FILE_EXPORTERNAMES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::importer {

/// Dynamo: a value created inside an operation's decomposition, which has no name in the traced program
/// ("val_12").
bool isInnerName(llvm::StringRef name);

/// Dynamo: the operation that a traced value is named after; the second value and later ones have a
/// number appended ("cat", "cat_1").
llvm::StringRef operationOf(llvm::StringRef name);

/// Dynamo: is the traced value named after detach()?
bool isDetached(llvm::StringRef name);

/// The name of a tensor split off a computed one (MergedTensors.h): its parameter, and the exporter's
/// name of the computed one.
std::string splitName(llvm::StringRef parameter, llvm::StringRef computed);
/// The exporter's name of a tensor, split off or not.
llvm::StringRef computedName(llvm::StringRef name);

/// TorchScript: folded, and named after the operator that reads it ("onnx::MatMul_12").
bool isFoldedName(llvm::StringRef name);

/// TorchScript: a tensor of the model, under its name there; neither folded nor a literal
/// (Literals.h), which is named by the path of a Constant node ("/layer/Constant_output_0").
bool isModelName(llvm::StringRef name);

/// TorchScript: are these the same node of two modules of one list ("/layers.0/fc/MatMul" and
/// "/layers.1/fc/MatMul")? Not if one module is called again ("/layer/fc_1/MatMul").
bool areOfNumberedModules(llvm::StringRef node, llvm::StringRef other);

/// TorchScript: is the tensor named like a parameter of a torch.nn module ("h.0.weight",
/// "attn.in_proj_bias")?
bool isModuleParameter(llvm::StringRef name);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FILE_EXPORTERNAMES_H
