//===- Devices.h - ONNX's own sharding annotations --------------------------------------------===//
//
// A model's file may say over which devices the tensors of its nodes are spread
// (NodeDeviceConfigurationProto). They are checked by ONNX's rules
// (https://github.com/onnx/onnx/blob/main/docs/proposals/ShardingFormalism.md and the comments of
// onnx.proto) whatever mesh the program will run on, and kept on parameters and ops
// (TrainDialect::kShardings) for `partition-seed-annotated`.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_DEVICES_H
#define PARTITA_LIB_IMPORT_DEVICES_H

#include "dialects/Train/Train.h"
#include "lib/Import/Importer.h"
#include "llvm/ADT/MapVector.h"

namespace partita::importer {

class Node;

class Devices {
public:
  explicit Devices(Importer &importer) : importer(importer) {}

  /// The model's device configurations. Errors where one is not as ONNX wants it.
  mlir::LogicalResult readConfigurations(const onnx::ModelProto &model);
  /// Puts a node's annotations on the parameters and ops that its tensors are. Errors, which name
  /// the node, where one is not as ONNX wants it.
  mlir::LogicalResult annotate(Node &node);
  /// TrainDialect::kConfigurations on a module whose file has any.
  void describe(mlir::ModuleOp module);

private:
  struct Configuration {
    int64_t devices = 0;
    int64_t tensors = 0; ///< annotated ones
    int64_t stages = 0; ///< of the pipeline, up to the last one named
  };

  mlir::LogicalResult annotate(Node &node, const onnx::NodeDeviceConfigurationProto &proto);
  mlir::LogicalResult attach(Node &node, const std::string &tensor, train::ShardingAttr sharding);

  Importer &importer;
  llvm::MapVector<mlir::StringAttr, Configuration> configurations;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_DEVICES_H
