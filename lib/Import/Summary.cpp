//===- Summary.cpp - what a model's graph alone shows -----------------------------------------===//

#include "lib/Import/Importer.h"
#include "partita/Import/Import.h"
#include <map>

using namespace mlir;

namespace partita {

using namespace importer;

/// The most frequent length of vectors, the smallest if several are equally frequent; without vectors,
/// the row length of the first matrix.
static std::optional<int64_t> hiddenSize(const onnx::GraphProto &graph) {
  std::map<int64_t, int64_t> vectors;
  std::optional<int64_t> row, best;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    std::optional<DType> type = dtypeFromOnnx(tensor.data_type());
    if (!type || !isFloat(*type))
      continue;
    if (tensor.dims_size() == 1 && tensor.dims(0) > 1)
      ++vectors[tensor.dims(0)];
    if (tensor.dims_size() == 2 && tensor.dims(1) > 1 && !row)
      row = tensor.dims(1);
  }
  for (auto [length, count] : vectors)
    if (!best || count > vectors[*best])
      best = length;
  return best ? best : row;
}

FailureOr<OnnxSummary> summarizeOnnx(llvm::StringRef path, MLIRContext *context) {
  auto file = ModelFile::open(path, context);
  if (failed(file))
    return failure();
  const onnx::GraphProto &graph = (*file)->model().graph();
  OnnxSummary summary;
  for (const onnx::ValueInfoProto *input : realInputs(graph)) {
    summary.inputs.push_back({input->name(), {}});
    for (const auto &dim : input->type().tensor_type().shape().dim())
      summary.inputs.back().dims.push_back(dim.has_dim_value() ? std::to_string(dim.dim_value())
                                                               : dim.dim_param());
  }
  summary.hidden = hiddenSize(graph);
  return summary;
}

} // namespace partita
