//===- Weights.cpp ----------------------------------------------------------------------------===//

#include "lib/Import/Weights/Weights.h"
#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/Buffers.h"
#include "lib/Import/Weights/PassedOn.h"
#include "lib/Import/Weights/SingleBiases.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "partita/Support/NearestNames.h"
#include "partita/Support/StableSort.h"

using namespace mlir;

namespace partita::importer {

Weights::Weights(ModelFile &file, const ImportOptions &options)
    : file(file), graph(file.model().graph()), options(options), origins(graph), budget(file),
      buffers(findBuffers(graph, file)) {}

const Weights::Tensor *Weights::known(llvm::StringRef name) const {
  auto entry = tensors.find(name);
  return entry == tensors.end() ? nullptr : &entry->second;
}

Weights::Tensor *Weights::known(llvm::StringRef name) {
  auto entry = tensors.find(name);
  return entry == tensors.end() ? nullptr : &entry->second;
}

const OriginalParameter *Weights::original(llvm::StringRef name) const {
  auto entry = originals.find(name);
  return entry == originals.end() ? nullptr : &entry->second;
}

LogicalResult Weights::decide() {
  if (!decided)
    decided = succeeded(decideOnce());
  return success(*decided);
}

LogicalResult Weights::decideOnce() {
  locateTensors();
  countUses(graph.node(), /*isOuter=*/true);
  for (const onnx::ValueInfoProto &output : graph.output())
    if (Tensor *tensor = known(output.name()))
      tensor->isRead = true;
  if (failed(readTrainable()) || failed(readFreeze()))
    return failure();
  decideEach();
  findTableCopies();
  findDerivedCopies();
  findFoldedCopies();
  restoreNames();
  findMadeBiases();
  if (failed(readTies()))
    return failure();
  noted = NoteFinder(*this).run();
  return success();
}

void Weights::locateTensors() {
  for (const onnx::TensorProto &proto : graph.initializer()) {
    std::optional<TensorData> data = file.tryLocate(proto);
    if (data && tensors.try_emplace(proto.name(), Tensor{&proto, *data, {}}).second)
      order.push_back(proto.name());
  }
}

void Weights::countUses(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                        bool isOuter) {
  for (const onnx::NodeProto &node : nodes) {
    bool isPassedOn = passesOn(node);
    for (int i = 0; i < node.input_size(); ++i) {
      auto passed = passedOn.find(node.input(i));
      Tensor *tensor = passed == passedOn.end() ? known(node.input(i)) : passed->second;
      if (!tensor)
        continue;
      tensor->isRead = true;
      if (isPassedOn)
        passedOn[node.output(0)] = tensor;
      else
        tensor->uses.push_back({&node, i});
    }
    for (const std::string &output : node.output())
      if (isOuter)
        makers[output] = &node;
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        countUses(attribute.g().node(), /*isOuter=*/false);
  }
}

bool Weights::isUsedAs(const Tensor &tensor, llvm::StringRef op, int operand) const {
  return !tensor.uses.empty() && llvm::all_of(tensor.uses, [&](const Use &use) {
    return use.node->op_type() == op && use.operand == operand;
  });
}

//===------------------------------------------------------------------------------------------===//
// What is a parameter
//===------------------------------------------------------------------------------------------===//

/// By the exporter's record. But if the record does not account for some parameter, a folded tensor may
/// be that parameter: one that is read in different ways, since exporters merge equal tensors, or one
/// whose elements differ, since decompositions only create ones and zeros.
bool Weights::isConstant(const Tensor &tensor) {
  const Origin &origin = origins.of(tensor.proto->name());
  if (origin.kind != Origin::Constant)
    return false;
  if (!origin.folded || origins.lost().empty() || tensor.uses.empty())
    return true;
  const Use &first = tensor.uses.front();
  if (isUsedAs(tensor, first.node->op_type(), first.operand) && isOneValue(file, tensor.data))
    return true;
  doubted.push_back(tensor.proto->name());
  return false;
}

void Weights::decideEach() {
  llvm::StringSet<> biases = findSingleBiases(graph);
  for (const std::string &name : order) {
    Tensor &tensor = *known(name);
    const TensorData &data = tensor.data;
    bool isForced = tensor.isParameter; // by --trainable
    if (!isFloat(data.type) || isForced)
      continue;
    // What was computed from parameters is trained, whatever it looks like, and so is a single element
    // that is a parameter or comes from one. A parameter that looks like a buffer is taken for one: the
    // sines of Marian's and Whisper's positions are parameters without a gradient, which no file
    // records.
    Origin::Kind kind = origins.of(name).kind;
    bool isOwn = kind == Origin::Parameter || kind == Origin::Derived;
    bool isComputed =
        kind == Origin::Derived && !isMoved(tensor) && !origins.of(name).lookedUp;
    bool isNamed = data.count > 0 && isOwn && (isComputed || data.count == 1);
    tensor.isParameter = isNamed || ((data.isParameter() || biases.contains(name)) &&
                                     !buffers.contains(name));
    tensor.mayRepeat = tensor.isParameter && mayRepeat(tensor);
    if (!tensor.isParameter || !isConstant(tensor))
      continue;
    tensor.isFrozen = data.place == TensorData::declared || data.count > maxSearched;
    tensor.isParameter = tensor.isFrozen;
  }
}

llvm::StringRef Weights::originOf(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  bool isOther = origin.parameters.size() == 1 && origin.parameters.front() != name;
  return isOther ? llvm::StringRef(origin.parameters.front()) : "";
}

train::Folded Weights::foldedBy(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  if (remade.contains(name))
    return train::Folded::Computed;
  if (origins.known())
    return origin.kind != Origin::Derived || original(name) ? train::Folded::No
           : isMoved(*known(name)) || origin.lookedUp       ? train::Folded::Moved
           : isShifted(name)                                ? train::Folded::Shifted
                                                            : train::Folded::Computed;
  return isFromPyTorch(file.model()) && isFoldedName(name) ? train::Folded::Moved
                                                           : train::Folded::No;
}

/// A bias that the exporter's record does not have is one that the exporter made.
void Weights::findMadeBiases() {
  if (!origins.known())
    return;
  for (const onnx::NodeProto &node : graph.node()) {
    int bias = factsOf(node).biasOperand;
    if (bias < 0 || node.input_size() <= bias || !isParameter(node.input(bias)) ||
        origins.of(node.input(bias)).kind != Origin::Unknown)
      continue;
    biasesMade.push_back(node.input(bias));
    remade.insert(node.input(bias));
    remade.insert(node.input(1));
  }
}

bool Weights::isShifted(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  if (!origin.shifted)
    return false;
  auto group = groups.find(origin.parameters.front());
  return group != groups.end() && group->second.size() == 1 && group->second.front() == name;
}

/// By its name in the file, or that of the only parameter that it comes from.
bool Weights::matches(const NamePattern &pattern, llvm::StringRef name) const {
  llvm::StringRef origin = originOf(name);
  return pattern.match(name) || (!origin.empty() && pattern.match(origin));
}

/// An exact name makes a tensor a parameter, whatever it looks like. A pattern does not cover single
/// numbers and buffers that happen to match: 'onnx::*' matches weights and single factors alike.
bool Weights::isMeant(const NamePattern &pattern, const Tensor &tensor) const {
  const std::string &name = tensor.proto->name();
  Origin::Kind kind = origins.of(name).kind;
  return pattern.isName() || kind == Origin::Parameter || kind == Origin::Derived ||
         (tensor.data.count > 1 && !buffers.contains(name));
}

/// The names of tensors that an option may mean: of those that `mayBe` accepts and the record does not
/// call constants, if there are any. A tensor from one parameter is called so.
llvm::SmallVector<llvm::StringRef>
Weights::namesToSuggest(llvm::function_ref<bool(const Tensor &)> mayBe) const {
  llvm::SmallVector<llvm::StringRef> names;
  for (const std::string &name : order)
    if (mayBe(*known(name)) && origins.of(name).kind != Origin::Constant)
      names.push_back(originOf(name).empty() ? llvm::StringRef(name) : originOf(name));
  if (names.empty())
    names.append(order.begin(), order.end());
  llvm::sort(names);
  names.erase(llvm::unique(names), names.end());
  return names;
}

LogicalResult Weights::readTrainable() {
  auto error = [&] { return emitError(file.location()) << "trainable: "; };
  for (const std::string &pattern : options.trainable) {
    llvm::Expected<NamePattern> wanted = NamePattern::parse(pattern);
    if (!wanted)
      return error() << llvm::toString(wanted.takeError());
    const Tensor *other = nullptr;
    bool any = false;
    for (const std::string &name : order) {
      Tensor &tensor = *known(name);
      if (!matches(*wanted, name))
        continue;
      other = other ? other : &tensor;
      bool isTrainable = isFloat(tensor.data.type) && tensor.isRead && tensor.data.count > 0;
      if (!isTrainable || !isMeant(*wanted, tensor))
        continue;
      any = tensor.isParameter = tensor.isDecided = true;
      tensor.isNamed |= wanted->isName();
    }
    if (any)
      continue;
    if (!other)
      return error() << wanted->unmatched("tensor of the model", namesToSuggest([](const Tensor &tensor) {
        return isFloat(tensor.data.type) && tensor.isRead;
      }));
    InFlightDiagnostic diagnostic = error() << "tensor " << quoted(other->proto->name());
    if (!isFloat(other->data.type))
      diagnostic << " is of type " << dtypeName(other->data.type) << "; only floats are trained";
    else if (other->data.count == 0)
      diagnostic << " has no elements";
    else if (!other->isRead)
      diagnostic << " is read by no node, so nothing would train it";
    else
      diagnostic << " matches '" << pattern
                 << "', but looks like a constant; its name without wildcards makes it a parameter";
    return diagnostic;
  }
  return success();
}

/// A frozen tensor needs no guess. The objective freezes it, and refuses a pattern that matches no
/// parameter: here the tensors of branches are not known.
LogicalResult Weights::readFreeze() {
  for (const std::string &pattern : options.freeze) {
    llvm::Expected<NamePattern> wanted = NamePattern::parse(pattern);
    if (!wanted)
      return emitError(file.location()) << "freeze: " << llvm::toString(wanted.takeError());
    for (auto &entry : tensors)
      if (matches(*wanted, entry.first()))
        entry.second.isDecided = entry.second.isHeld = true;
  }
  return success();
}

//===------------------------------------------------------------------------------------------===//
// What is a copy
//===------------------------------------------------------------------------------------------===//

bool Weights::isReshaped(const WeightCopy &copy) const {
  const OriginalParameter *original = this->original(copy.table);
  Shape shape = original && !original->transposed ? original->shape : known(copy.table)->data.shape;
  if (copy.dim >= 0)
    shape[copy.dim] = copy.size;
  return !copy.transposed && shape != known(copy.name)->data.shape;
}

void Weights::addCopy(WeightCopy copy, llvm::StringRef name, llvm::StringRef table) {
  copy.name = name.str();
  copy.table = table.str();
  known(name)->isCopy = true;
  found.push_back(std::move(copy));
}

/// Copies of embedding tables, by their values, unless the record has two parameters or, where it has
/// neither, the user gives the exact name. (A pattern for all weights does not count.)
void Weights::findTableCopies() {
  for (const WeightCopy &copy : findCopies(file)) {
    const Tensor *tensor = known(copy.name), *table = known(copy.table);
    const Origin &first = origins.of(copy.name), &second = origins.of(copy.table);
    bool areOthers = first.kind != Origin::Unknown && second.kind != Origin::Unknown &&
                     first.parameters != second.parameters;
    bool isNamed = tensor->isNamed && first.kind == Origin::Unknown;
    if (tensor->isParameter && table->isParameter && !areOthers && !isNamed)
      addCopy(copy, copy.name, copy.table);
  }
}

/// Tensors that come from a single parameter by the record: those whose values agree are the parameter;
/// the others of a group are trained independently.
void Weights::findDerivedCopies() {
  std::map<std::string, std::vector<std::string>> byParameter;
  for (const std::string &name : order) {
    const Tensor &tensor = *known(name);
    const Origin &origin = origins.of(name);
    if (origin.parameters.size() == 1 && tensor.isParameter && !tensor.isFrozen && !tensor.isCopy)
      byParameter[origin.parameters.front()].push_back(name);
  }
  for (auto &entry : byParameter) {
    const std::string &parameter = entry.first;
    std::vector<std::string> &members = entry.second;
    partita::stableSort(members, [&](const std::string &a, const std::string &b) {
      bool isWhole = a == parameter, isOther = b == parameter;
      return isWhole != isOther ? isWhole : known(a)->data.count > known(b)->data.count;
    });
    Group &group = groups[parameter];
    for (const std::string &name : members) {
      std::optional<WeightCopy> copy;
      for (const std::string &table : group)
        if (!copy && (copy = findCopyIn(file, known(table)->data, known(name)->data, budget)))
          addCopy(*copy, name, table);
      if (!copy)
        group.push_back(name);
    }
  }
}

/// TorchScript's exporter merges equal parameters before it folds any. So a folded tensor with the
/// elements of a tensor that has its name in the model comes from that tensor.
void Weights::findFoldedCopies() {
  if (origins.known() || !isFromPyTorch(file.model()))
    return;
  std::vector<const std::string *> folded, named;
  for (const std::string &name : order) {
    const Tensor &tensor = *known(name);
    if (tensor.isRead && tensor.isParameter && !tensor.isFrozen && !tensor.isCopy &&
        !tensor.isDecided && (isFoldedName(name) || isModelName(name)))
      (isFoldedName(name) ? folded : named).push_back(&name);
  }
  auto mayHold = [](const TensorData &table, const TensorData &copy, bool isWhole) {
    return isWhole ? table.count == copy.count
                   : table.count > copy.count && table.shape.size() == copy.shape.size() &&
                         llvm::any_of(copy.shape, [&](int64_t size) {
                           return size > 1 && llvm::is_contained(table.shape, size);
                         });
  };
  for (bool isWhole : {true, false})
    for (const std::string *copy : folded)
      for (const std::string *table : named)
        if (const TensorData &data = known(*table)->data, &part = known(*copy)->data;
            !known(*copy)->isCopy && mayHold(data, part, isWhole))
          if (std::optional<WeightCopy> found = findCopyIn(file, data, part, budget))
            addCopy(*found, *copy, *table);
}

/// Is a slice of it a copy?
bool Weights::isSliced(llvm::StringRef name) const {
  return llvm::any_of(found,
                      [&](const WeightCopy &each) { return each.table == name && each.dim >= 0; });
}

/// By its readers, if they agree.
Decomposed Weights::decomposed(const Tensor &tensor) const {
  const Origin &origin = origins.of(tensor.proto->name());
  std::optional<Decomposed> how;
  for (const Use &use : tensor.uses) {
    Decomposed here = Origins::decomposed(origin, *use.node, use.operand);
    if (how && *how != here)
      return Decomposed::Unknown;
    how = here;
  }
  return how.value_or(Decomposed::Unknown);
}

/// Does it hold elements of parameters, each at most once, as far as the record shows?
bool Weights::isMoved(const Tensor &tensor) const {
  const Origin &origin = origins.of(tensor.proto->name());
  return origin.moved && !tensor.mayRepeat &&
         (!origin.inner || decomposed(tensor) != Decomposed::Unknown);
}

/// May a concatenation hold an element twice? One of a single parameter is taken for a reordering only
/// if all its elements differ. Different parameters may have equal elements, such as zeros, so there
/// only a repeated slice counts.
bool Weights::mayRepeat(const Tensor &tensor) const {
  const Origin &origin = origins.of(tensor.proto->name());
  if (!origin.moved || !origin.joined)
    return false;
  return origin.parameters.size() == 1 ? !hasDistinctPieces(file, tensor.data, 1)
                                       : repeatsSlice(file, tensor.data);
}

/// A folded weight gets its name in the model, and a linear layer's its layout there, so that weights
/// and checkpoints fit the model.
void Weights::restoreNames() {
  for (const auto &[parameter, group] : groups)
    if (group.size() == 1 && group.front() != parameter && !known(parameter))
      restoreName(parameter, group.front());
}

void Weights::restoreName(const std::string &parameter, const std::string &name) {
  const Tensor &tensor = *known(name);
  const Origin &origin = origins.of(name);
  Shape shape = tensor.data.shape;
  Decomposed how = origin.inside ? decomposed(tensor) : Decomposed::Unknown;
  bool transposed = how == Decomposed::Transposed && origin.direct;
  if (transposed && shape.size() == 2 && tensor.data.isRaw())
    std::swap(shape[0], shape[1]);
  else if (how == Decomposed::Vector && !isSliced(name) && shape.size() > 1 &&
           llvm::count(shape, 1) + 1 == static_cast<int64_t>(shape.size()))
    llvm::erase(shape, 1);
  else
    return;
  originals[name] = {parameter, shape, transposed};
}

//===------------------------------------------------------------------------------------------===//
// --tie
//===------------------------------------------------------------------------------------------===//

/// By its name in the file, or in the model.
Weights::Tensor *Weights::named(llvm::StringRef name) {
  if (Tensor *tensor = known(name))
    return tensor;
  for (const auto &entry : originals)
    if (entry.second.name == name)
      return known(entry.first());
  return nullptr;
}

LogicalResult Weights::readTies() {
  for (const std::string &pair : options.tie) {
    auto [first, second] = llvm::StringRef(pair).rsplit('=');
    if (failed(tie(first, second)))
      return failure();
  }
  return success();
}

LogicalResult Weights::tie(llvm::StringRef first, llvm::StringRef second) {
  auto error = [&] { return emitError(file.location()) << "tie: "; };
  Tensor *table = named(first), *copy = named(second);
  for (auto [name, tensor] : {std::pair(first, table), std::pair(second, copy)}) {
    if (!tensor)
      return error() << "the model has no tensor " << quoted(name)
                     << nearestNames(name, namesToSuggest([](const Tensor &each) {
                          return each.isParameter && each.isRead;
                        }));
    if (!tensor->isParameter || !tensor->isRead)
      return error() << "tensor " << quoted(name)
                     << (tensor->isRead ? " is not a parameter" : " is read by no node");
  }
  if (table == copy)
    return error() << quoted(first) << " and " << quoted(second) << " are one tensor";
  table->isDecided = copy->isDecided = true;
  const std::string &tableName = table->proto->name(), &copyName = copy->proto->name();
  for (const WeightCopy &each : found) {
    if ((each.name == copyName && each.table == tableName) ||
        (each.name == tableName && each.table == copyName))
      return success(); // they are tied already
    if (each.name == copyName || each.name == tableName)
      return error() << quoted(each.name) << " is tied to " << quoted(each.table)
                     << " already; tie that";
    if (each.table == copyName)
      return error() << quoted(each.name) << " is tied to " << quoted(copyName) << " already; give "
                     << quoted((second + "=" + first).str());
  }
  const Shape &a = table->data.shape, &b = copy->data.shape;
  bool isTurned = a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
  if (table->data.type != copy->data.type || (a != b && !isTurned))
    return error() << quoted(first) << " is " << shapeText(a) << " of "
                   << dtypeName(table->data.type) << " and " << quoted(second) << " "
                   << shapeText(b) << " of " << dtypeName(copy->data.type)
                   << ", which is neither the same nor transposed";
  bool hasValues = table->data.place != TensorData::declared;
  if (hasValues != (copy->data.place != TensorData::declared))
    return error() << "the file holds values for only one of " << quoted(first) << " and "
                   << quoted(second) << ", so they cannot be compared";
  std::optional<bool> transposed; // a square matrix may be either
  if (!hasValues)
    transposed = a != b;
  else if (a == b && compareElements(file, table->data, copy->data) != Equality::Different)
    transposed = false;
  else if (compareTransposed(file, table->data, copy->data) != Equality::Different)
    transposed = true;
  if (!transposed)
    return error() << quoted(first) << " and " << quoted(second) << ", both " << shapeText(a)
                   << (isTurned ? " as they are or transposed" : "")
                   << ", have different values; tied tensors must have equal initial values";
  addCopy(WeightCopy{"", "", *transposed}, copyName, tableName);
  originals.erase(copyName);
  return success();
}

} // namespace partita::importer
