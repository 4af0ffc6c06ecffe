//===- SharedWeights.cpp ----------------------------------------------------------------------===//

#include "lib/Import/Weights/SharedWeights.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/Buffers.h"
#include "lib/Import/Weights/PassedOn.h"
#include "lib/Import/Weights/WeightValues.h"
#include "onnx.pb.h"

using namespace mlir;

namespace partita::importer {

namespace {

struct ReadCounts {
  int64_t all = 0, rows = 0; ///< `rows`: as a table that rows are looked up in
};

class UseCounter {
public:
  explicit UseCounter(const onnx::GraphProto &graph) {
    for (const onnx::TensorProto &proto : graph.initializer())
      uses.try_emplace(proto.name());
    count(graph.node());
  }

  ReadCounts of(llvm::StringRef name) const { return uses.lookup(name); }

private:
  void count(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) {
    for (const onnx::NodeProto &node : nodes) {
      if (passesOn(node)) { // another name is not a use
        aliases[node.output(0)] = rootOf(node.input(0));
        continue;
      }
      for (const auto &[i, input] : llvm::enumerate(node.input()))
        if (auto found = uses.find(rootOf(input)); found != uses.end()) {
          ++found->second.all;
          found->second.rows += i == 0 && effectOf(node) == OpEffect::LooksUp;
        }
      for (const onnx::AttributeProto &attribute : node.attribute())
        if (attribute.has_g())
          count(attribute.g().node());
    }
  }

  std::string rootOf(const std::string &name) const {
    auto found = aliases.find(name);
    return found == aliases.end() ? name : found->second;
  }

  llvm::StringMap<ReadCounts> uses;
  llvm::StringMap<std::string> aliases;
};

} // namespace

std::vector<SharedWeight> findShared(ModelFile &file, const llvm::StringSet<> &buffers) {
  const onnx::GraphProto &graph = file.model().graph();
  UseCounter counter(graph);
  auto locate = [&](const onnx::TensorProto &proto) -> std::optional<TensorData> {
    if (buffers.contains(proto.name()))
      return std::nullopt;
    std::optional<TensorData> data = file.tryLocate(proto);
    bool isWeight = data && isFloat(data->type) && !data->shape.empty() && data->count > 1;
    return isWeight ? data : std::nullopt;
  };
  int64_t matrixReads = 1; // of the matrix with the most, lookups aside
  for (const onnx::TensorProto &proto : graph.initializer())
    if (std::optional<TensorData> data = locate(proto); data && data->shape.size() > 1) {
      ReadCounts uses = counter.of(proto.name());
      matrixReads = std::max(matrixReads, uses.all - uses.rows);
    }
  std::vector<SharedWeight> shared;
  for (const onnx::TensorProto &proto : graph.initializer()) {
    ReadCounts uses = counter.of(proto.name());
    std::optional<TensorData> data = uses.all > 1 ? locate(proto) : std::nullopt;
    if (!data)
      continue;
    shared.push_back({proto.name(), uses.all, std::nullopt});
    if (uses.all > matrixReads && data->shape.size() == 1) // norms and biases are vectors
      shared.back().mergedNumber = onlyNumber(file, *data);
  }
  return shared;
}

} // namespace partita::importer
