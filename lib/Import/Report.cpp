//===- Report.cpp - what an ONNX file holds ---------------------------------------------------===//

#include "Importer.h"

using namespace mlir;

namespace partita {

using namespace importer;

namespace {

std::string dimText(const onnx::TensorShapeProto::Dimension &dim) {
  if (dim.has_dim_value())
    return std::to_string(dim.dim_value());
  return dim.dim_param().empty() ? "?" : quoted(dim.dim_param());
}

void reportInputs(const onnx::GraphProto &graph, llvm::raw_ostream &os) {
  for (const onnx::ValueInfoProto *input : realInputs(graph)) {
    const onnx::TypeProto::Tensor &type = input->type().tensor_type();
    os << "input " << quoted(input->name()) << ": " << dtypeName(type.elem_type()) << " [";
    llvm::interleaveComma(type.shape().dim(), os, [&](const auto &dim) { os << dimText(dim); });
    os << "]\n";
  }
  for (const onnx::ValueInfoProto &output : graph.output())
    os << "output " << quoted(output.name()) << "\n";
}

LogicalResult reportTensors(ModelFile &file, llvm::raw_ostream &os) {
  struct Sum {
    int64_t tensors = 0, elements = 0, bytes = 0;
  };
  Sum stored, external, declared;
  for (const onnx::TensorProto &tensor : file.model().graph().initializer()) {
    FailureOr<TensorData> data = file.locate(tensor, [&] {
      InFlightDiagnostic diagnostic = emitError(file.location());
      diagnostic << "tensor " << quoted(tensor.name()) << ": ";
      return diagnostic;
    });
    if (failed(data))
      return failure();
    Sum &sum = data->place == TensorData::inModel    ? stored
               : data->place == TensorData::external ? external
                                                     : declared;
    ++sum.tensors;
    sum.elements += data->count;
    sum.bytes += data->count * byteSize(data->type);
  }
  auto line = [&](const Sum &sum, const char *where) {
    if (sum.tensors)
      os << "tensors " << where << ": " << sum.tensors << ", " << sum.elements << " elements, "
         << sum.bytes << " bytes\n";
  };
  line(stored, "in the file");
  line(external, "in external data");
  line(declared, "declared without values");
  return success();
}

} // namespace

LogicalResult reportOnnx(llvm::StringRef path, MLIRContext *context, llvm::raw_ostream &os) {
  auto file = ModelFile::open(path, context);
  if (failed(file))
    return failure();
  const onnx::ModelProto &model = (*file)->model();
  os << "exporter " << quoted(model.producer_name()) << " " << quoted(model.producer_version())
     << ", ONNX IR " << model.ir_version() << "\n";
  llvm::StringMap<int64_t> opsets;
  for (const onnx::OperatorSetIdProto &opset : model.opset_import()) {
    opsets[canonicalDomain(opset.domain())] = opset.version();
    os << "opset " << opset.version() << " of "
       << (canonicalDomain(opset.domain()).empty() ? "ai.onnx" : quoted(opset.domain())) << "\n";
  }
  reportInputs(model.graph(), os);
  if (failed(reportTensors(**file, os)))
    return failure();
  // Most frequent first, then by name.
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const onnx::NodeProto &node : model.graph().node())
    ++counts[{canonicalDomain(node.domain()).str(), node.op_type()}];
  std::vector<std::pair<std::pair<std::string, std::string>, int64_t>> sorted(counts.begin(),
                                                                              counts.end());
  llvm::sort(sorted, [](const auto &a, const auto &b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  os << "nodes: " << model.graph().node_size() << ", functions: " << model.functions_size() << "\n";
  for (const auto &[op, count] : sorted) {
    const std::string &domain = op.first, &type = op.second;
    bool known = findOp(domain, type, opsets.lookup(domain)) ||
                 llvm::any_of(model.functions(), [&](const onnx::FunctionProto &function) {
                   return function.name() == type && canonicalDomain(function.domain()) == domain;
                 });
    os << llvm::formatv("{0,8} ", count) << llvm::StringRef(quoted(type)).drop_front().drop_back();
    if (!domain.empty())
      os << " of " << quoted(domain);
    os << (known ? "\n" : "  not supported\n");
  }
  return success();
}

} // namespace partita
