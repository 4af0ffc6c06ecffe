//===- SplitTensors.cpp -----------------------------------------------------------------------===//
//
// Field numbers: ModelProto graph 7; GraphProto initializer 5; NodeProto input 1; TensorProto name
// 8; ValueInfoProto name 1, metadata_props 4 (key 1, value 2).
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Export/SplitTensors.h"
#include "lib/Export/Wire.h"
#include "onnx.pb.h"

using namespace llvm;

namespace partita {

SplitTensors::SplitTensors(StringRef model) : merged(importer::findMergedIn(model)) {
  for (const importer::MergedTensor &tensor : merged)
    for (auto [node, operand] : tensor.readers)
      inputs[node][operand] = tensor.name;
}

bool SplitTensors::rewire(int node, StringRef message, std::string &to) const {
  auto changed = inputs.find(node);
  if (changed == inputs.end())
    return false;
  int operand = 0;
  std::string problem = wire::walk(message, [&](const wire::Field &field) {
    auto name = changed->second.end();
    if (field.number == 1 && field.isBytes)
      name = changed->second.find(operand++);
    if (name == changed->second.end())
      to += field.encoded;
    else
      wire::putBytes(to, 1, name->second);
    return std::string();
  });
  return problem.empty();
}

std::string renameTensor(StringRef message, StringRef name) {
  std::string to;
  wire::putBytes(to, 8, name);
  (void)wire::walk(message, [&](const wire::Field &field) {
    if (field.number != 8)
      to += field.encoded;
    return std::string();
  });
  return to;
}

std::string renameValue(StringRef message, const importer::MergedTensor &tensor) {
  std::string to, entry;
  wire::putBytes(to, 1, tensor.name);
  (void)wire::walk(message, [&](const wire::Field &field) {
    if (field.number != 1 && field.number != 4)
      to += field.encoded;
    return std::string();
  });
  wire::putBytes(entry, 1, importer::foldedKey);
  wire::putBytes(entry, 2, tensor.record);
  wire::putBytes(to, 4, entry);
  return to;
}

StringRef nameOfValue(StringRef message) {
  StringRef name;
  (void)wire::walk(message, [&](const wire::Field &field) {
    name = field.number == 1 && field.isBytes ? field.content : name;
    return std::string();
  });
  return name;
}

} // namespace partita
