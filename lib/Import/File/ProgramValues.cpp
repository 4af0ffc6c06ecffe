//===- ProgramValues.cpp ----------------------------------------------------------------------===//

#include "lib/Import/File/ProgramValues.h"
#include "partita/Import/HostTensor.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::importer {

ProgramValues::ProgramValues(const onnx::GraphProto &graph) {
  if (const std::string *signature = valueOf(graph.metadata_props(), signatureKey))
    forInputLines(*signature, [&](llvm::StringRef line) {
      const char *problem = nullptr;
      if (std::optional<ProgramInput> input = parseInput(line, problem))
        targets[input->name] = input->target;
    });
  for (const auto *values : {&graph.input(), &graph.value_info(), &graph.output()})
    for (const onnx::ValueInfoProto &value : *values) {
      int32_t code = value.type().tensor_type().elem_type();
      std::optional<DType> type = dtypeFromOnnx(code);
      if (code != 0 && !(type && isFloat(*type)))
        discrete.insert(value.name());
    }
  for (const onnx::ValueInfoProto &input : graph.input())
    known.insert(input.name());
  for (const onnx::TensorProto &tensor : graph.initializer())
    known.insert(tensor.name());
  for (const onnx::NodeProto &node : graph.node())
    known.insert_range(node.output());
}

llvm::SmallVector<ProgramCall::Argument> ProgramValues::missing(const ProgramCall &call) const {
  llvm::SmallVector<ProgramCall::Argument> found;
  llvm::copy_if(call.arguments, std::back_inserter(found), [&](const ProgramCall::Argument &each) {
    return !known.contains(each.name) && !targets.contains(each.name);
  });
  return found;
}

} // namespace partita::importer
