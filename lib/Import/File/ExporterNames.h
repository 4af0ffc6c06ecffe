//===- ExporterNames.h - what names say in files of PyTorch's exporters -------------*- C++ -*-===//
//
// Both exporters, TorchScript's and dynamo's, name what they have computed themselves. All that is
// read out of such a name is here.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_EXPORTERNAMES_H
#define PARTITA_LIB_IMPORT_EXPORTERNAMES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::onnx {
class ModelProto;
} // namespace partita::onnx

namespace partita::importer {

/// Has one of PyTorch's exporters written the file?
bool isFromPyTorch(const onnx::ModelProto &model);

/// Of dynamo: a value made inside an operation's decomposition, which has no name in the traced
/// program ("val_12").
bool isInnerName(llvm::StringRef name);

/// Of dynamo: the operation that a traced value is called after, with a number behind it from the
/// second on ("cat", "cat_1").
llvm::StringRef operationOf(llvm::StringRef name);

/// Of dynamo: is the traced value called after detach()?
bool isDetached(llvm::StringRef name);

/// Of a tensor split off a computed one (MergedTensors.h): the parameter that it is for, and the
/// exporter's own name of the other one.
std::string splitName(llvm::StringRef parameter, llvm::StringRef computed);
/// The exporter's own name of a tensor, split off or not.
llvm::StringRef computedName(llvm::StringRef name);

/// Of TorchScript: folded, and called after the operator that reads it ("onnx::MatMul_12").
bool isFoldedName(llvm::StringRef name);

/// Of TorchScript: a tensor of the model, under its name there. It is neither folded nor a number of
/// the program, called by the path of a Constant node ("/layer/Constant_output_0").
bool isModelName(llvm::StringRef name);

/// Of TorchScript: are these the same node of two modules of one list ("/layers.0/fc/MatMul" and
/// "/layers.1/fc/MatMul")? Not of one module that is called again ("/layer/fc_1/MatMul").
bool areOfNumberedModules(llvm::StringRef node, llvm::StringRef other);

/// Of TorchScript: is the tensor called as modules of torch.nn call their parameters ("h.0.weight",
/// "attn.in_proj_bias")?
bool isModuleParameter(llvm::StringRef name);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_EXPORTERNAMES_H
