//===- RecordedTensors.cpp --------------------------------------------------------------------===//

#include "lib/Import/Weights/Merged/RecordedTensors.h"
#include "lib/Import/File/ExportRecord.h"
#include "partita/Import/HostTensor.h"

namespace partita::importer {

RecordedTensors::RecordedTensors(const onnx::GraphProto &graph) : origins(graph) {
  const std::string *signature = valueOf(graph.metadata_props(), signatureKey);
  isKnown = signature && origins.known();
  if (!isKnown)
    return;
  readInputs(*signature);
  readTensors(graph);
}

void RecordedTensors::readInputs(llvm::StringRef signature) {
  forInputLines(signature, [&](llvm::StringRef line) {
    const char *problem = nullptr;
    std::optional<ProgramInput> input = parseInput(line, problem);
    if (!input || input->target.empty())
      return;
    targets[input->name] = input->target;
    absent.insert(input->target); // until readTensors finds it
    bool isParameter = input->kind == ProgramInput::Parameter;
    (isParameter ? parameterTargets : bufferTargets).push_back(input->target);
  });
}

void RecordedTensors::readTensors(const onnx::GraphProto &graph) {
  llvm::StringSet<> all = absent;
  for (const onnx::ValueInfoProto &value : graph.value_info())
    if (const std::string *record = valueOf(value.metadata_props(), foldedKey))
      records[value.name()] = *record;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    const std::string &name = tensor.name();
    const Origin &origin = origins.of(name);
    names.insert(name);
    if (std::optional<std::vector<std::string>> from = sourcesOf(name))
      folded.insert_range(*from);
    absent.erase(name);
    for (const std::string &parameter : origin.parameters)
      absent.erase(parameter);
    if (all.contains(name) && origin.kind != Origin::Unknown && !origin.folded)
      sources[name] = name;
    else if (origin.parameters.size() == 1)
      sources[name] = origin.parameters.front();
    else if (std::optional<DType> type = dtypeFromOnnx(tensor.data_type()); type && isFloat(*type))
      numbers.insert(name);
  }
}

std::optional<llvm::StringRef> RecordedTensors::targetIn(llvm::StringRef tensor) const {
  auto found = sources.find(tensor);
  if (found == sources.end())
    return std::nullopt;
  return llvm::StringRef(found->second);
}

} // namespace partita::importer
