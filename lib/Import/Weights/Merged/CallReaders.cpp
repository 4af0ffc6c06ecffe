//===- CallReaders.cpp ------------------------------------------------------------------------===//

#include "lib/Import/Weights/Merged/CallReaders.h"
#include "lib/Import/Operators/Registry.h"

namespace partita::importer {

bool CallReader::names(llvm::StringRef target) const {
  return llvm::any_of(arguments, [&](const Argument &each) { return each.target == target; });
}

std::optional<llvm::StringRef> CallReader::targetAt(int place) const {
  std::optional<llvm::StringRef> found;
  for (const Argument &each : arguments)
    if (each.place == place) {
      if (found)
        return std::nullopt;
      found = each.target;
    }
  return found;
}

llvm::SmallVector<CallReader::Operand> CallReader::unexplained() const {
  llvm::SmallVector<Operand> found;
  llvm::copy_if(operands, std::back_inserter(found),
                [&](const Operand &each) { return !names(each.target) && each.index != literal; });
  return found;
}

std::optional<llvm::ArrayRef<llvm::StringRef>> CallReader::slotsInOrder() const {
  llvm::ArrayRef<llvm::StringRef> filled = slots;
  while (static_cast<int>(filled.size()) > inputs && filled.back().empty())
    filled = filled.drop_back();
  if (static_cast<int>(filled.size()) != inputs)
    return std::nullopt;
  return filled;
}

CallReaders::CallReaders(const onnx::GraphProto &graph, const RecordedTensors &tensors)
    : tensors(tensors) {
  for (const onnx::ValueInfoProto &input : graph.input())
    results.insert(input.name());
  for (const auto &[index, node] : llvm::enumerate(graph.node()))
    read(node, static_cast<int>(index));
}

void CallReaders::read(const onnx::NodeProto &node, int index) {
  results.insert_range(node.output());
  std::optional<ProgramCall> call = callOf(node);
  if (!call)
    return;
  CallReader reader;
  reader.node = index;
  reader.op = node.op_type();
  reader.operation = call->operation;
  reader.inputs = node.input_size();
  readOperands(node, reader);
  readArguments(*call, reader);
  readLiterals(node, *call, reader);
  if (atenOperation(reader.operation).effect == AtenOperation::LooksUp)
    for (const CallReader::Operand &operand : reader.operands)
      tables.insert(operand.target);
  if (!reader.arguments.empty() || !reader.operands.empty())
    readers.push_back(std::move(reader));
}

void CallReaders::readOperands(const onnx::NodeProto &node, CallReader &reader) const {
  for (const auto &[i, input] : llvm::enumerate(node.input())) {
    if (std::optional<llvm::StringRef> target = tensors.targetIn(input))
      reader.operands.push_back({static_cast<int>(i), input, *target});
    if (!tensors.isNumbers(input))
      continue;
    reader.readsNumbers = true;
    if (auto from = tensors.sourcesOf(input))
      reader.numberSources.insert_range(*from);
  }
}

void CallReaders::readArguments(const ProgramCall &call, CallReader &reader) {
  for (const ProgramCall::Argument &argument : call.arguments) {
    llvm::StringRef target = tensors.targetOf(argument.name);
    if (target.empty()) {
      reader.unnamed.push_back(argument.name);
      continue;
    }
    reader.arguments.push_back({argument.place, target});
    if (tensors.isAbsent(target))
      wanted.insert(target);
  }
  for (llvm::StringRef text : call.texts)
    if (text == "None" || text.consume_front("%"))
      reader.slots.push_back(text == "None" ? "" : text);
}

/// Which operand is a literal, or a tensor that it creates: where each argument is an
/// operand, and the file has all others.
void CallReaders::readLiterals(const onnx::NodeProto &node, const ProgramCall &call,
                               CallReader &reader) const {
  static constexpr OpEffect elementwise[] = {OpEffect::Adds,     OpEffect::Scales,
                                             OpEffect::Bounds,   OpEffect::Powers,
                                             OpEffect::Combines, OpEffect::Chooses};
  reader.mayHaveLiterals = llvm::is_contained(elementwise, effectOf(node));
  int arguments = 0, literals = 0;
  for (llvm::StringRef text : call.texts) {
    double number;
    arguments += !text.empty();
    literals += !text.empty() && !text.getAsDouble(number);
  }
  for (const ProgramCall::Argument &argument : call.arguments) {
    llvm::StringRef target = tensors.targetOf(argument.name);
    bool isAbsent = !target.empty() && tensors.isAbsent(target);
    if (!isAbsent && (!target.empty() || isTaken(argument.name)))
      continue;
    bool isCreated = !isAbsent && operationMaking(argument.name).effect == AtenOperation::Creates;
    reader.mayHaveLiterals &= isCreated;
    literals += isCreated ? 1 : node.input_size(); // too many
  }
  llvm::SmallVector<CallReader::Operand> others = reader.unexplained();
  if (arguments == node.input_size() && literals == 1 && others.size() == 1 &&
      tensors.isParameter(others.front().target))
    reader.literal = others.front().index;
}

llvm::SmallVector<CallReader::Argument>
CallReaders::absentArguments(const CallReader &reader) const {
  llvm::SmallVector<CallReader::Argument> absent;
  llvm::copy_if(
      reader.arguments, std::back_inserter(absent), [&](const CallReader::Argument &each) {
        return tensors.isAbsent(each.target) && !reader.numberSources.contains(each.target);
      });
  return absent;
}

} // namespace partita::importer
