//===- InitializerUses.cpp --------------------------------------------------------------------===//

#include "lib/Import/Weights/InitializerUses.h"
#include "lib/Import/Operators/Registry.h"

namespace partita::importer {

/// Is the result the operand under another name or in another type?
static bool passesOn(const onnx::NodeProto &node) {
  return effectOf(node) == OpEffect::Renames && node.input_size() == 1 && node.output_size() == 1;
}

bool InitializerUses::Use::looksUp() const {
  return operand == 0 && effectOf(*node) == OpEffect::LooksUp;
}

InitializerUses::InitializerUses(const onnx::GraphProto &graph,
                                 llvm::function_ref<bool(const onnx::NodeProto &)> handsOn) {
  for (const onnx::TensorProto &tensor : graph.initializer())
    entries.try_emplace(tensor.name());
  collect(graph.node(), handsOn);
  for (const onnx::ValueInfoProto &output : graph.output())
    if (Entry *entry = find(output.name()))
      entry->isRead = entry->isOutput = true;
}

llvm::ArrayRef<InitializerUses::Use> InitializerUses::of(llvm::StringRef name) const {
  const Entry *entry = known(name);
  return entry ? llvm::ArrayRef<Use>(entry->uses) : llvm::ArrayRef<Use>();
}

bool InitializerUses::isOutput(llvm::StringRef name) const {
  const Entry *entry = known(name);
  return entry && entry->isOutput;
}

bool InitializerUses::isRead(llvm::StringRef name) const {
  const Entry *entry = known(name);
  return entry && entry->isRead;
}

InitializerUses::Entry *InitializerUses::find(llvm::StringRef name) {
  if (Entry *entry = aliases.lookup(name))
    return entry;
  auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

const InitializerUses::Entry *InitializerUses::known(llvm::StringRef name) const {
  auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

void InitializerUses::collect(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                              llvm::function_ref<bool(const onnx::NodeProto &)> handsOn) {
  for (const onnx::NodeProto &node : nodes) {
    bool isPassedOn = passesOn(node), handsFirstOn = isPassedOn || (handsOn && handsOn(node));
    for (int i = 0; i < node.input_size(); ++i) {
      Entry *entry = find(node.input(i));
      if (!entry)
        continue;
      entry->isRead = true;
      if (!isPassedOn)
        entry->uses.push_back({&node, i});
      if (i == 0 && handsFirstOn)
        for (const std::string &output : node.output())
          if (!output.empty())
            aliases[output] = entry;
    }
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        collect(attribute.g().node(), handsOn);
  }
}

} // namespace partita::importer
