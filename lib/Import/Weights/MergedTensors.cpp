//===- MergedTensors.cpp ----------------------------------------------------------------------===//

#include "partita/Import/MergedTensors.h"
#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/File/Origins.h"
#include "lib/Import/File/WireScanner.h"
#include "lib/Import/Operators/Registry.h"
#include "partita/Import/ExportRecord.h"
#include "partita/Import/HostTensor.h"
#include "llvm/ADT/SetOperations.h"
#include <map>
#include <set>
#include <tuple>

namespace partita::importer {

namespace {

/// An operand that is a tensor of the file, and the model's tensor that it is or comes from alone.
struct Operand {
  int index;
  llvm::StringRef tensor, target;
};

/// An argument that is a parameter or a buffer.
struct Named {
  int place;
  llvm::StringRef target;
};

struct Reader {
  int node;
  llvm::StringRef operation, op;
  llvm::SmallVector<Operand> operands;
  llvm::SmallVector<Named> named;
  llvm::SmallVector<llvm::StringRef> unnamed; ///< arguments that are values of the program
  /// The name of each positional argument that may be a tensor; empty for None.
  llvm::SmallVector<llvm::StringRef> slots;
  int inputs = 0;              ///< how many the node has
  int number = -1;             ///< the operand that the call has as a number
  bool mayHaveNumbers = false; ///< elementwise, and its call names nothing that the file lacks
  bool readsComputed = false;  ///< numbers that come from no parameter, by the record
  llvm::StringSet<> computedFrom; ///< what they come from
};

class MergedFinder {
public:
  explicit MergedFinder(const onnx::GraphProto &graph) : graph(graph), origins(graph) {}

  MergedTensors run() {
    const std::string *signature = valueOf(graph.metadata_props(), signatureKey);
    if (!signature || !origins.known())
      return {};
    readInputs(*signature);
    readTensors();
    readNodes();
    for (const Reader &reader : readers)
      learn(reader);
    for (const Reader &reader : readers)
      learnFromRest(reader);
    for (const Reader &reader : readers)
      place(reader);
    MergedTensors result;
    for (auto &entry : split)
      result.tensors.push_back(std::move(entry.second));
    findUnplaced(result);
    findSeveral(result);
    return result;
  }

private:
  void readInputs(llvm::StringRef signature) {
    forInputLines(signature, [&](llvm::StringRef line) {
      const char *problem = nullptr;
      std::optional<ProgramInput> input = parseInput(line, problem);
      if (!input || input->target.empty())
        return;
      targets[input->name] = input->target;
      lost.insert(input->target);
      bool isParameter = input->kind == ProgramInput::Parameter;
      (isParameter ? parameters : buffers).push_back(input->target);
    });
  }

  void readTensors() {
    llvm::StringSet<> all = lost;
    for (const onnx::ValueInfoProto &value : graph.value_info())
      if (const std::string *folded = valueOf(value.metadata_props(), foldedKey))
        records[value.name()] = *folded;
    for (const onnx::TensorProto &tensor : graph.initializer()) {
      const std::string &name = tensor.name();
      const Origin &origin = origins.of(name);
      taken.insert(name);
      if (std::optional<std::vector<std::string>> from = parsePythonList(records.lookup(name)))
        folded.insert_range(*from);
      lost.erase(name);
      for (const std::string &parameter : origin.parameters)
        lost.erase(parameter);
      if (all.contains(name) && origin.kind != Origin::Unknown && !origin.folded)
        sources[name] = name;
      else if (origin.parameters.size() == 1)
        sources[name] = origin.parameters.front();
      else if (std::optional<DType> type = dtypeFromOnnx(tensor.data_type());
               type && isFloat(*type))
        computed.insert(name);
    }
  }

  void readNodes() {
    for (const onnx::ValueInfoProto &input : graph.input())
      taken.insert(input.name());
    for (const auto &[index, node] : llvm::enumerate(graph.node())) {
      taken.insert_range(node.output());
      Reader reader;
      reader.node = static_cast<int>(index);
      reader.op = node.op_type();
      for (const auto &[i, input] : llvm::enumerate(node.input())) {
        if (auto source = sources.find(input); source != sources.end())
          reader.operands.push_back({static_cast<int>(i), input, source->second});
        if (!computed.contains(input))
          continue;
        reader.readsComputed = true;
        if (auto from = parsePythonList(records.lookup(input)))
          reader.computedFrom.insert_range(*from);
      }
      std::optional<ProgramCall> call = callOf(node);
      if (!call)
        continue;
      reader.operation = call->operation;
      for (const ProgramCall::Argument &argument : call->arguments)
        if (auto target = targets.find(argument.name); target != targets.end()) {
          reader.named.push_back({argument.place, target->second});
          if (lost.contains(target->second))
            wanted.insert(target->second);
        } else {
          reader.unnamed.push_back(argument.name);
        }
      reader.inputs = node.input_size();
      readNumbers(node, *call, reader);
      for (llvm::StringRef text : call->texts)
        if (text == "None" || text.consume_front("%"))
          reader.slots.push_back(text == "None" ? "" : text);
      if (atenOperation(reader.operation).effect == AtenOperation::LooksUp)
        for (const Operand &operand : reader.operands)
          tables.insert(operand.target);
      if (!reader.named.empty() || !reader.operands.empty())
        readers.push_back(std::move(reader));
    }
  }

  /// Which operand is a number of the program, or a tensor that it creates: where each argument is an
  /// operand, and the file has all others.
  void readNumbers(const onnx::NodeProto &node, const ProgramCall &call, Reader &reader) const {
    static constexpr OpEffect elementwise[] = {OpEffect::Adds,   OpEffect::Scales,
                                               OpEffect::Bounds, OpEffect::Powers,
                                               OpEffect::Combines, OpEffect::Chooses};
    reader.mayHaveNumbers = llvm::is_contained(elementwise, effectOf(node));
    int arguments = 0, numbers = 0;
    for (llvm::StringRef text : call.texts) {
      double number;
      arguments += !text.empty();
      numbers += !text.empty() && !text.getAsDouble(number);
    }
    for (const ProgramCall::Argument &argument : call.arguments) {
      auto target = targets.find(argument.name);
      bool isLost = target != targets.end() && lost.contains(target->second);
      if (!isLost && (target != targets.end() || taken.contains(argument.name)))
        continue;
      bool isCreated =
          !isLost && operationMaking(argument.name).effect == AtenOperation::Creates;
      reader.mayHaveNumbers &= isCreated;
      numbers += isCreated ? 1 : node.input_size(); // too many
    }
    llvm::SmallVector<Operand> others = othersOf(reader);
    if (arguments == node.input_size() && numbers == 1 && others.size() == 1 &&
        origins.isParameter(others.front().target))
      reader.number = others.front().index;
  }

  static bool isNamed(const Reader &reader, llvm::StringRef target) {
    return llvm::any_of(reader.named, [&](const Named &each) { return each.target == target; });
  }

  using Key = std::tuple<llvm::StringRef, llvm::StringRef, int>;
  static Key keyOf(const Reader &reader, const Operand &operand) {
    return {reader.operation, reader.op, operand.index};
  }

  /// Which argument the operands are that have been merged with none, or with later ones.
  void learn(const Reader &reader) {
    for (const Operand &operand : reader.operands)
      for (const Named &named : reader.named)
        if (named.target == operand.target) {
          known[keyOf(reader, operand)].insert(named.place);
          readAsItself.insert(named.target);
        }
  }

  /// If one operand belongs to another parameter and one argument is missing, they match.
  void learnFromRest(const Reader &reader) {
    llvm::SmallVector<Operand> others = othersOf(reader);
    llvm::SmallVector<Named> missing = missingOf(reader);
    if (others.size() == 1 && missing.size() == 1)
      known[keyOf(reader, others.front())].insert(missing.front().place);
  }

  llvm::SmallVector<Named> missingOf(const Reader &reader) const {
    llvm::SmallVector<Named> missing;
    llvm::copy_if(reader.named, std::back_inserter(missing),
                  [&](const Named &each) {
                    return lost.contains(each.target) && !reader.computedFrom.contains(each.target);
                  });
    return missing;
  }

  static llvm::SmallVector<Operand> othersOf(const Reader &reader) {
    llvm::SmallVector<Operand> others;
    llvm::copy_if(reader.operands, std::back_inserter(others),
                  [&](const Operand &each) {
                    return !isNamed(reader, each.target) && each.index != reader.number;
                  });
    return others;
  }

  void place(const Reader &reader) {
    if (placeNumbers(reader))
      return;
    for (const Operand &operand : reader.operands)
      if (operand.index == reader.number)
        assignNumber(reader, operand);
    llvm::SmallVector<Named> missing = missingOf(reader);
    if (missing.empty())
      return;
    if (atenOperation(reader.operation).keepsOrder && fits(reader)) {
      for (auto [operand, named] : llvm::zip_equal(reader.operands, reader.named))
        assign(reader, operand, named.target);
      return;
    }
    for (const Operand &operand : othersOf(reader)) {
      auto places = known.find(keyOf(reader, operand));
      std::optional<llvm::StringRef> target;
      if (places != known.end() && places->second.size() == 1)
        target = namedAt(reader, *places->second.begin());
      if (target)
        assign(reader, operand, *target);
      else
        for (const Named &each : missing)
          confused[each.target].insert(operand.tensor.str());
    }
    if (reader.readsComputed) // one of those, perhaps (Weights::isConstant)
      for (const Named &each : missing)
        hidden.insert(each.target);
  }

  /// Operands of a norm that were merged with ones or zeros which its decomposition creates.
  bool placeNumbers(const Reader &reader) {
    const AtenOperation &operation = atenOperation(reader.operation);
    if (operation.takesNumbers != reader.op)
      return false;
    if (!operation.keepsOrder) {
      for (const Operand &operand : othersOf(reader))
        assignNumber(reader, operand);
      return true;
    }
    llvm::ArrayRef<llvm::StringRef> slots = reader.slots;
    while (static_cast<int>(slots.size()) > reader.inputs && slots.back().empty())
      slots = slots.drop_back();
    auto targetAt = [&](const Operand &operand) { return targets.lookup(slots[operand.index]); };
    bool isOrdered = static_cast<int>(slots.size()) == reader.inputs &&
                     llvm::all_of(reader.operands, [&](const Operand &operand) {
                       llvm::StringRef target = targetAt(operand);
                       return slots[operand.index].empty() || target == operand.target ||
                              lost.contains(target);
                     });
    if (!isOrdered)
      return false;
    for (const Operand &operand : reader.operands)
      if (slots[operand.index].empty())
        assignNumber(reader, operand);
      else
        assign(reader, operand, targetAt(operand));
    return true;
  }

  void assignNumber(const Reader &reader, const Operand &operand) {
    std::string name = splitName(graph.node(reader.node).output(0),
                                 "val_" + std::to_string(operand.index));
    if (taken.contains(name))
      return;
    MergedTensor &tensor = split[{name, operand.tensor.str()}];
    tensor = {name, operand.tensor.str(), "['val_0']", {{reader.node, operand.index}}};
  }

  void findUnplaced(MergedTensors &result) const {
    auto isOpen = [&](llvm::StringRef target) {
      return wanted.contains(target) && !placed.contains(target) && !hidden.contains(target);
    };
    std::set<std::string> tensors; // that a warning of parameters is about
    for (llvm::StringRef target : parameters) {
      auto found = confused.find(target);
      if (isOpen(target) && found == confused.end())
        result.removed.push_back(target.str());
      else if (isOpen(target)) {
        result.undecided.push_back({target.str(), {found->second.begin(), found->second.end()}});
        tensors.insert(found->second.begin(), found->second.end());
      }
    }
    for (llvm::StringRef target : buffers) {
      auto found = confused.find(target);
      if (!isOpen(target) || found == confused.end())
        continue;
      std::set<std::string> others = llvm::set_difference(found->second, tensors);
      if (!others.empty())
        result.undecided.push_back(
            {target.str(), {others.begin(), others.end()}, /*isBuffer=*/true});
    }
  }

  /// Where calls name no parameter, they name what the program has computed from one: "%t" and "%t_1",
  /// of which the file keeps one value, are transposes of one parameter, or of two that were equal.
  void findSeveral(MergedTensors &result) const {
    auto isNowhere = [&](llvm::StringRef target) {
      return lost.contains(target) && !wanted.contains(target) && !folded.contains(target);
    };
    for (llvm::StringRef target : parameters)
      if (isNowhere(target))
        result.nowhere.push_back(target.str());
    for (llvm::StringRef target : buffers)
      if (isNowhere(target))
        result.nowhereBuffers.push_back(target.str());
    std::map<llvm::StringRef, llvm::StringRef> names; // by tensor
    std::set<llvm::StringRef> found;
    for (const Reader &reader : readers)
      for (const Operand &operand : reader.operands) {
        bool isOwn = operand.tensor == operand.target;
        if (isOwn && mayBeNumber(reader, operand)) {
          if (found.insert(operand.tensor).second)
            result.unnamed.push_back({operand.tensor.str(), graph.node(reader.node).name(),
                                      reader.operation.str()});
          continue;
        }
        std::optional<llvm::StringRef> name = nameOf(reader, operand);
        if (!name)
          continue;
        bool isCopied = !result.nowhereBuffers.empty() &&
                        operationMaking(*name).effect == AtenOperation::Copies;
        if (isOwn ? !readAsItself.contains(operand.target) || !(isComputed(*name) || isCopied)
                  : result.nowhere.empty())
          continue;
        llvm::StringRef first =
            isOwn ? operand.target : names.try_emplace(operand.tensor, *name).first->second;
        if (first != *name && found.insert(operand.tensor).second)
          result.several.push_back({operand.tensor.str(), first.str(), name->str()});
      }
    if (result.nowhere.empty() && result.nowhereBuffers.empty())
      result.several.clear();
  }

  /// Does the call leave open what this operand is, a parameter that another node reads as itself?
  bool mayBeNumber(const Reader &reader, const Operand &operand) const {
    return reader.mayHaveNumbers && operand.index != reader.number &&
           origins.isParameter(operand.target) && readAsItself.contains(operand.target) &&
           !isNamed(reader, operand.target);
  }

  /// By its operation, rather than its argument under another name.
  static bool isComputed(llvm::StringRef value) {
    return operationMaking(value).hasNeutralNumber();
  }

  /// What the program calls an operand where the call does not name the parameter: the only argument that
  /// the file has no other value of.
  std::optional<llvm::StringRef> nameOf(const Reader &reader, const Operand &operand) const {
    std::optional<llvm::StringRef> found;
    if (reader.operands.size() != 1 || isNamed(reader, operand.target) ||
        !missingOf(reader).empty())
      return std::nullopt;
    for (llvm::StringRef name : reader.unnamed) {
      if (name != computedName(operand.tensor) && taken.contains(name))
        continue;
      if (found)
        return std::nullopt;
      found = name;
    }
    return found;
  }

  /// Is each operand what the argument at its place names, or may it be?
  bool fits(const Reader &reader) const {
    return reader.operands.size() == reader.named.size() &&
           llvm::all_of(llvm::zip_equal(reader.operands, reader.named), [&](const auto &pair) {
             const auto &[operand, named] = pair;
             return named.target == operand.target || lost.contains(named.target);
           });
  }

  /// The only argument there.
  static std::optional<llvm::StringRef> namedAt(const Reader &reader, int place) {
    std::optional<llvm::StringRef> found;
    for (const Named &each : reader.named)
      if (each.place == place) {
        if (found)
          return std::nullopt;
        found = each.target;
      }
    return found;
  }

  /// A lookup table and another weight with the same values are tied, whatever name is recorded.
  void assign(const Reader &reader, const Operand &operand, llvm::StringRef target) {
    if (target == operand.target || !lost.contains(target))
      return;
    bool isOwn = operand.tensor == operand.target;
    std::string record = isOwn ? "" : recordFor(operand, target);
    std::string name = isOwn ? target.str() : splitName(target, operand.tensor);
    if (tables.contains(operand.target) || taken.contains(name) || (!isOwn && record.empty())) {
      confused[target].insert(operand.tensor.str());
      return;
    }
    placed.insert(target);
    MergedTensor &tensor = split[{target.str(), operand.tensor.str()}];
    tensor.name = name;
    tensor.source = operand.tensor.str();
    tensor.record = record;
    tensor.readers.push_back({reader.node, operand.index});
  }

  /// What a tensor is computed from, with another parameter for the one that is its own.
  std::string recordFor(const Operand &operand, llvm::StringRef target) const {
    std::optional<std::vector<std::string>> list = parsePythonList(records.lookup(operand.tensor));
    std::string text;
    for (const std::string &each : list.value_or(std::vector<std::string>())) {
      llvm::StringRef name = each == operand.target ? target : llvm::StringRef(each);
      if (name.find_first_of("'\\\n") != llvm::StringRef::npos)
        return {};
      text += (text.empty() ? "['" : ", '") + name.str() + "'";
    }
    return text.empty() ? text : text + "]";
  }

  const onnx::GraphProto &graph;
  Origins origins;
  llvm::StringMap<llvm::StringRef> targets;           ///< by the name of an input of the program
  std::vector<llvm::StringRef> parameters, buffers;   ///< targets, in order
  llvm::StringSet<> lost;                             ///< targets of which the file has nothing
  llvm::StringMap<std::string> sources;               ///< targets by tensor
  llvm::StringMap<std::string> records;               ///< of what a value is computed from
  llvm::StringSet<> taken;                            ///< names
  llvm::StringSet<> tables;                           ///< targets that rows are looked up in
  llvm::StringSet<> computed;                         ///< tensors that are numbers and no target's
  llvm::StringSet<> folded;                           ///< values that tensors are computed from
  llvm::StringSet<> readAsItself;                     ///< targets that a node reads as its call says
  llvm::StringSet<> wanted, placed, hidden;           ///< lost targets
  llvm::StringMap<std::set<std::string>> confused;    ///< lost targets, with what they may be
  std::vector<Reader> readers;
  std::map<Key, std::set<int>> known;                                ///< places of arguments
  std::map<std::pair<std::string, std::string>, MergedTensor> split; ///< by target and source
};

} // namespace

MergedTensors findMerged(const onnx::GraphProto &graph) { return MergedFinder(graph).run(); }

/// Redirects a node's operand to another tensor, in its sharding annotations too.
static void replaceInput(onnx::NodeProto &node, int operand, const std::string &name) {
  std::string before = node.input(operand);
  node.set_input(operand, name);
  if (llvm::is_contained(node.input(), before))
    return; // as another operand
  for (onnx::NodeDeviceConfigurationProto &each : *node.mutable_device_configurations())
    for (onnx::ShardingSpecProto &spec : *each.mutable_sharding_spec())
      if (spec.tensor_name() == before)
        spec.set_tensor_name(name);
}

void splitMerged(onnx::ModelProto &model) {
  onnx::GraphProto &graph = *model.mutable_graph();
  MergedTensors merged = findMerged(graph);
  llvm::StringMap<int> indices;
  if (!merged.tensors.empty())
    for (const auto &[i, tensor] : llvm::enumerate(graph.initializer()))
      indices.try_emplace(tensor.name(), static_cast<int>(i));
  for (const MergedTensor &tensor : merged.tensors) {
    onnx::TensorProto copy = graph.initializer(indices.lookup(tensor.source));
    copy.set_name(tensor.name);
    *graph.add_initializer() = std::move(copy);
    if (!tensor.record.empty()) {
      onnx::ValueInfoProto &value = *graph.add_value_info();
      value.set_name(tensor.name);
      onnx::StringStringEntryProto &entry = *value.add_metadata_props();
      entry.set_key(foldedKey.str());
      entry.set_value(tensor.record);
    }
    for (auto [node, operand] : tensor.readers)
      replaceInput(*graph.mutable_node(node), operand, tensor.name);
  }
}

MergedTensors findMergedIn(llvm::StringRef file) {
  ScanResult scan = scanModel(reinterpret_cast<const uint8_t *>(file.data()), file.size());
  onnx::ModelProto model;
  if (!scan.error.empty() || !model.ParseFromString(scan.skeleton))
    return {};
  return findMerged(model.graph());
}

} // namespace partita::importer
