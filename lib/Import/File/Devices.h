//===- Devices.h - ONNX's own sharding annotations --------------------------------------------===//
//
// A model's file may say how the tensors of its nodes are sharded over devices
// (NodeDeviceConfigurationProto). The annotations are checked by ONNX's rules
// (https://github.com/onnx/onnx/blob/main/docs/proposals/ShardingFormalism.md and the comments of
// onnx.proto), whatever the mesh, and kept on parameters and ops (TrainDialect::kShardings) for
// `partition-seed-annotated`.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FILE_DEVICES_H
#define PARTITA_LIB_IMPORT_FILE_DEVICES_H

#include "dialects/Train/Train.h"
#include "lib/Import/Importer.h"
#include "llvm/ADT/MapVector.h"

namespace partita::importer {

class Node;

class Devices {
public:
  explicit Devices(Importer &importer) : importer(importer) {}

  /// Reads the model's device configurations. Fails if one breaks ONNX's rules.
  mlir::LogicalResult readConfigurations(const onnx::ModelProto &model);
  /// Puts a node's annotations on the parameters and ops of its tensors. Fails, with an error that names
  /// the node, if one breaks ONNX's rules.
  mlir::LogicalResult annotate(Node &node);
  /// Sets TrainDialect::kConfigurations on the module if the file has any.
  void describe(mlir::ModuleOp module);

private:
  struct Configuration {
    int64_t devices = 0;
    int64_t tensors = 0; ///< annotated ones
    int64_t stages = 0;  ///< of the pipeline, up to the last one that a node names
  };

  mlir::LogicalResult annotate(Node &node, const onnx::NodeDeviceConfigurationProto &proto);
  mlir::LogicalResult attach(Node &node, const std::string &tensor, train::ShardingAttr sharding);

  Importer &importer;
  llvm::MapVector<mlir::StringAttr, Configuration> configurations;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FILE_DEVICES_H
