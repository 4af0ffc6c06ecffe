//===- Weights.cpp ----------------------------------------------------------------------------===//

#include "lib/Import/Weights/Weights.h"
#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/Buffers.h"
#include "lib/Import/Weights/PassedOn.h"
#include "lib/Import/Weights/SingleBiases.h"
#include "lib/Import/Weights/WeightNotes.h"

using namespace mlir;

namespace partita::importer {

Weights::Weights(ModelFile &file, const ImportOptions &options)
    : file(file), graph(file.model().graph()), options(options), origins(graph),
      exporter(exporterOf(file.model(), origins)), budget(file), buffers(findBuffers(graph, file)) {
}

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
  if (!origin.folded || origins.unaccounted().empty() || tensor.uses.empty())
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
    tensor.isUnreadConstant = data.place == TensorData::declared || data.count > maxSearched;
    tensor.isParameter = tensor.isUnreadConstant;
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
  if (exporter == Exporter::Dynamo)
    return origin.kind != Origin::Derived || original(name) ? train::Folded::No
           : isPart(name)                                   ? train::Folded::Part
           : isMoved(*known(name)) || origin.lookedUp       ? train::Folded::Moved
           : isShifted(name)                                ? train::Folded::Shifted
                                                            : train::Folded::Computed;
  return exporter == Exporter::TorchScript && isFoldedName(name) ? train::Folded::Moved
                                                                 : train::Folded::No;
}

llvm::SmallVector<int64_t, 2> Weights::originalDimensions(llvm::StringRef name) const {
  if (exporter != Exporter::Dynamo || !train::isMoved(foldedBy(name)))
    return {};
  const Origin &origin = origins.of(name);
  const Tensor &tensor = *known(name);
  int64_t own = tensor.data.shape.size(), before = own;
  if (origin.lookedUp)
    before = 2; // a table
  else if (origin.lastInner && decomposed(tensor) == Decomposed::Vector)
    before = 1;
  auto bounded = [](int64_t dims) { return std::clamp<int64_t>(dims, 0, mostDimensions); };
  int64_t least = bounded(before + origin.leastDropped),
          most = bounded(before + origin.mostDropped);
  if (least == own && most == own)
    return {};
  return {least, most};
}

/// A bias that the exporter's record does not have is one that the exporter made.
void Weights::findMadeBiases() {
  if (exporter != Exporter::Dynamo)
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

bool Weights::isPart(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  if (origin.parameters.size() != 1 || origin.lookedUp || !isMoved(*known(name)))
    return false;
  auto group = groups.find(origin.parameters.front());
  return group != groups.end() && group->second.size() > 1;
}

bool Weights::isShifted(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  if (!origin.shifted)
    return false;
  auto group = groups.find(origin.parameters.front());
  return group != groups.end() && group->second.size() == 1 && group->second.front() == name;
}

//===------------------------------------------------------------------------------------------===//
// What the exporter has done to a parameter
//===------------------------------------------------------------------------------------------===//

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
         (!origin.lastInner || decomposed(tensor) != Decomposed::Unknown);
}

/// May a concatenation hold an element twice? One of a single parameter is taken for a reordering only
/// if all its elements differ. Different parameters may have equal elements, such as zeros, so there
/// only a repeated slice counts.
bool Weights::mayRepeat(const Tensor &tensor) const {
  const Origin &origin = origins.of(tensor.proto->name());
  if (!origin.moved || !origin.joined)
    return false;
  return origin.parameters.size() == 1 ? !hasDistinctRuns(file, tensor.data, 1)
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
  Decomposed how = origin.allInner ? decomposed(tensor) : Decomposed::Unknown;
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

} // namespace partita::importer
