//===- ArgumentMatcher.cpp --------------------------------------------------------------------===//

#include "lib/Import/Weights/Merged/ArgumentMatcher.h"
#include "lib/Import/File/ExporterNames.h"

namespace partita::importer {

ArgumentMatcher::ArgumentMatcher(const onnx::GraphProto &graph, const RecordedTensors &tensors,
                                 const CallReaders &readers)
    : graph(graph), tensors(tensors), readers(readers) {
  for (const CallReader &reader : readers.all())
    learn(reader);
  for (const CallReader &reader : readers.all())
    learnFromRest(reader);
  for (const CallReader &reader : readers.all())
    place(reader);
}

std::vector<MergedTensor> ArgumentMatcher::takeSplit() {
  std::vector<MergedTensor> result;
  for (auto &entry : split)
    result.push_back(std::move(entry.second));
  return result;
}

const std::set<std::string> *ArgumentMatcher::candidatesFor(llvm::StringRef target) const {
  auto found = candidates.find(target);
  return found == candidates.end() ? nullptr : &found->second;
}

//===------------------------------------------------------------------------------------------===//
// Learning
//===------------------------------------------------------------------------------------------===//

/// Which argument the operands are that have been merged with none, or with later ones.
void ArgumentMatcher::learn(const CallReader &reader) {
  for (const Operand &operand : reader.operands)
    for (const CallReader::Argument &argument : reader.arguments)
      if (argument.target == operand.target) {
        known[keyOf(reader, operand)].insert(argument.place);
        readAsItself.insert(argument.target);
      }
}

/// If one operand belongs to another parameter and one argument is absent, they match.
void ArgumentMatcher::learnFromRest(const CallReader &reader) {
  llvm::SmallVector<Operand> others = reader.unexplained();
  llvm::SmallVector<CallReader::Argument> absent = readers.absentArguments(reader);
  if (others.size() == 1 && absent.size() == 1)
    known[keyOf(reader, others.front())].insert(absent.front().place);
}

//===------------------------------------------------------------------------------------------===//
// Placing
//===------------------------------------------------------------------------------------------===//

void ArgumentMatcher::place(const CallReader &reader) {
  if (placeOfNorm(reader))
    return;
  for (const Operand &operand : reader.operands)
    if (operand.index == reader.literal)
      assignNumber(reader, operand);
  llvm::SmallVector<CallReader::Argument> absent = readers.absentArguments(reader);
  if (absent.empty() || placeInOrder(reader))
    return;
  for (const Operand &operand : reader.unexplained()) {
    auto places = known.find(keyOf(reader, operand));
    std::optional<llvm::StringRef> target;
    if (places != known.end() && places->second.size() == 1)
      target = reader.targetAt(*places->second.begin());
    if (target)
      assign(reader, operand, *target);
    else
      for (const CallReader::Argument &each : absent)
        candidates[each.target].insert(operand.tensor.str());
  }
  if (reader.readsNumbers) // one of those, perhaps (WeightDecider::isConstant)
    for (const CallReader::Argument &each : absent)
      hidden.insert(each.target);
}

/// Where the operation keeps the order of its arguments, and each operand is what the argument at its
/// place names, or may be it.
bool ArgumentMatcher::placeInOrder(const CallReader &reader) {
  if (!atenOperation(reader.operation).keepsOrder ||
      reader.operands.size() != reader.arguments.size())
    return false;
  for (auto [operand, argument] : llvm::zip_equal(reader.operands, reader.arguments))
    if (argument.target != operand.target && !tensors.isAbsent(argument.target))
      return false;
  for (auto [operand, argument] : llvm::zip_equal(reader.operands, reader.arguments))
    assign(reader, operand, argument.target);
  return true;
}

/// Operands of a norm that were merged with ones or zeros which its decomposition creates.
bool ArgumentMatcher::placeOfNorm(const CallReader &reader) {
  const AtenOperation &operation = atenOperation(reader.operation);
  if (operation.takesNumbers != reader.op)
    return false;
  if (!operation.keepsOrder) {
    for (const Operand &operand : reader.unexplained())
      assignNumber(reader, operand);
    return true;
  }
  std::optional<llvm::ArrayRef<llvm::StringRef>> slots = reader.slotsInOrder();
  if (!slots)
    return false;
  auto slotOf = [&](const Operand &operand) { return (*slots)[operand.index]; };
  bool isOrdered = llvm::all_of(reader.operands, [&](const Operand &operand) {
    llvm::StringRef target = tensors.targetOf(slotOf(operand));
    return slotOf(operand).empty() || target == operand.target || tensors.isAbsent(target);
  });
  if (!isOrdered)
    return false;
  for (const Operand &operand : reader.operands)
    if (slotOf(operand).empty())
      assignNumber(reader, operand);
    else
      assign(reader, operand, tensors.targetOf(slotOf(operand)));
  return true;
}

//===------------------------------------------------------------------------------------------===//
// Splitting
//===------------------------------------------------------------------------------------------===//

/// A lookup table and another weight that equals it are tied, whatever name is recorded.
void ArgumentMatcher::assign(const CallReader &reader, const Operand &operand,
                             llvm::StringRef target) {
  if (target == operand.target || !tensors.isAbsent(target))
    return;
  std::string record = operand.isOwn() ? "" : recordFor(operand, target);
  std::string name = operand.isOwn() ? target.str() : splitName(target, operand.tensor);
  if (readers.isTable(operand.target) || readers.isTaken(name) ||
      (!operand.isOwn() && record.empty())) {
    candidates[target].insert(operand.tensor.str());
    return;
  }
  placed.insert(target);
  MergedTensor &tensor = split[{target.str(), operand.tensor.str()}];
  tensor.name = name;
  tensor.source = operand.tensor.str();
  tensor.record = record;
  tensor.readers.push_back({reader.node, operand.index});
}

/// A tensor that comes from no parameter, by its record.
void ArgumentMatcher::assignNumber(const CallReader &reader, const Operand &operand) {
  std::string name =
      splitName(graph.node(reader.node).output(0), "val_" + std::to_string(operand.index));
  if (readers.isTaken(name))
    return;
  MergedTensor &tensor = split[{name, operand.tensor.str()}];
  tensor = {name, operand.tensor.str(), "['val_0']", {{reader.node, operand.index}}};
}

/// What a tensor is computed from, with another parameter for the one that is its own. Empty if it
/// cannot be written as a list.
std::string ArgumentMatcher::recordFor(const Operand &operand, llvm::StringRef target) const {
  std::optional<std::vector<std::string>> sources = tensors.sourcesOf(operand.tensor);
  std::string text;
  for (const std::string &each : sources.value_or(std::vector<std::string>())) {
    llvm::StringRef name = each == operand.target ? target : llvm::StringRef(each);
    if (name.find_first_of("'\\\n") != llvm::StringRef::npos)
      return {};
    text += (text.empty() ? "['" : ", '") + name.str() + "'";
  }
  return text.empty() ? text : text + "]";
}

} // namespace partita::importer
