//===- MergedTensors.cpp ----------------------------------------------------------------------===//

#include "lib/Import/Weights/Merged/MergedTensors.h"
#include "lib/Import/File/WireScanner.h"
#include "lib/Import/Weights/Merged/UnplacedFinder.h"

namespace partita::importer {

MergedTensors findMerged(const onnx::GraphProto &graph) {
  RecordedTensors tensors(graph);
  if (!tensors.known())
    return {};
  CallReaders readers(graph, tensors);
  ArgumentMatcher matcher(graph, tensors, readers);
  MergedTensors result;
  UnplacedFinder(graph, tensors, readers, matcher).run(result);
  result.tensors = matcher.takeSplit();
  return result;
}

/// Redirects a node's operand to another tensor, in its sharding annotations too.
static void replaceInput(onnx::NodeProto &node, int operand, const std::string &name) {
  std::string before = node.input(operand);
  node.set_input(operand, name);
  if (llvm::is_contained(node.input(), before))
    return; // as another operand
  for (onnx::NodeDeviceConfigurationProto &each : *node.mutable_device_configurations())
    for (onnx::ShardingSpecProto &spec : *each.mutable_sharding_spec())
      if (spec.tensor_name() == before)
        spec.set_tensor_name(name);
}

void splitMerged(onnx::ModelProto &model) {
  onnx::GraphProto &graph = *model.mutable_graph();
  MergedTensors merged = findMerged(graph);
  llvm::StringMap<int> indices;
  if (!merged.tensors.empty())
    for (const auto &[i, tensor] : llvm::enumerate(graph.initializer()))
      indices.try_emplace(tensor.name(), static_cast<int>(i));
  for (const MergedTensor &tensor : merged.tensors) {
    onnx::TensorProto copy = graph.initializer(indices.lookup(tensor.source));
    copy.set_name(tensor.name);
    *graph.add_initializer() = std::move(copy);
    if (!tensor.record.empty()) {
      onnx::ValueInfoProto &value = *graph.add_value_info();
      value.set_name(tensor.name);
      onnx::StringStringEntryProto &entry = *value.add_metadata_props();
      entry.set_key(foldedKey.str());
      entry.set_value(tensor.record);
    }
    for (auto [node, operand] : tensor.readers)
      replaceInput(*graph.mutable_node(node), operand, tensor.name);
  }
}

std::vector<MergedTensor> findMergedIn(llvm::StringRef file) {
  ScanResult scan = scanModel(reinterpret_cast<const uint8_t *>(file.data()), file.size());
  onnx::ModelProto model;
  if (!scan.error.empty() || !model.ParseFromString(scan.skeleton))
    return {};
  return findMerged(model.graph()).tensors;
}

} // namespace partita::importer
