//===- SharedWeights.cpp ----------------------------------------------------------------------===//

#include "lib/Import/Weights/SharedWeights.h"
#include "lib/Import/Weights/InitializerUses.h"
#include "lib/Import/Weights/WeightValues.h"
#include "onnx.pb.h"

using namespace mlir;

namespace partita::importer {

std::vector<SharedWeight> findShared(ModelFile &file, const llvm::StringSet<> &buffers) {
  const onnx::GraphProto &graph = file.model().graph();
  InitializerUses uses(graph);
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
      int64_t reads =
          llvm::count_if(uses.of(proto.name()), [](auto use) { return !use.looksUp(); });
      matrixReads = std::max(matrixReads, reads);
    }
  std::vector<SharedWeight> shared;
  for (const onnx::TensorProto &proto : graph.initializer()) {
    int64_t reads = uses.of(proto.name()).size();
    std::optional<TensorData> data = reads > 1 ? locate(proto) : std::nullopt;
    if (!data)
      continue;
    shared.push_back({proto.name(), reads, std::nullopt});
    if (reads > matrixReads && data->shape.size() == 1) // norms and biases are vectors
      shared.back().mergedNumber = onlyNumber(file, *data);
  }
  return shared;
}

} // namespace partita::importer
