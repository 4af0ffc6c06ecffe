//===- WeightDecider.cpp ----------------------------------------------------------------------===//

#include "lib/Import/Weights/WeightDecider.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/SingleBiases.h"

using namespace mlir;

namespace partita::importer {

LogicalResult WeightDecider::run() {
  locateTensors();
  findUses();
  // What is a parameter: options first, then the record, use and values.
  if (failed(readTrainable()) || failed(readFreeze()))
    return failure();
  decideKinds();
  // Which parameters are copies of others. Each search leaves out the copies that are known.
  addTableCopies();
  addDerivedCopies(); // makes the groups of tensors of one parameter
  addFoldedCopies();
  // What the exporter has done to the others.
  restoreNames();
  findMadeBiases();
  return readTies(); // by the restored names; adds copies
}

WeightDecider::Tensor *WeightDecider::known(llvm::StringRef name) const {
  auto entry = weights.tensors.find(name);
  return entry == weights.tensors.end() ? nullptr : &entry->second;
}

void WeightDecider::locateTensors() {
  for (const onnx::TensorProto &proto : graph.initializer()) {
    std::optional<TensorData> data = file.tryLocate(proto);
    if (data && weights.tensors.try_emplace(proto.name(), Tensor{&proto, *data, {}}).second)
      weights.order.push_back(proto.name());
  }
}

void WeightDecider::findUses() {
  InitializerUses uses(graph);
  for (auto &entry : weights.tensors) {
    entry.second.uses = uses.of(entry.first());
    entry.second.isRead = uses.isRead(entry.first());
  }
  for (const onnx::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      weights.makers[output] = &node;
}

//===------------------------------------------------------------------------------------------===//
// What is a parameter
//===------------------------------------------------------------------------------------------===//

/// By the exporter's record. But if the record does not account for some parameter, a folded tensor may
/// be that parameter: one that is read in different ways, since exporters merge equal tensors, or one
/// whose elements differ, since decompositions only create ones and zeros.
bool WeightDecider::isConstant(const Tensor &tensor) {
  const Origin &origin = origins.of(tensor.proto->name());
  if (origin.kind != Origin::Constant)
    return false;
  if (!origin.folded || origins.unaccounted().empty() || tensor.uses.empty())
    return true;
  const WeightTable::Use &first = tensor.uses.front();
  if (weights.isUsedAs(tensor, first.node->op_type(), first.operand) &&
      isOneNumber(file, tensor.data))
    return true;
  weights.doubted.push_back(tensor.proto->name());
  return false;
}

/// May a concatenation hold an element twice? One of a single parameter is taken for a reordering only
/// if all its elements differ. Different parameters may have equal elements, such as zeros, so there
/// only a repeated slice counts.
bool WeightDecider::mayRepeat(const Tensor &tensor) const {
  const Origin &origin = origins.of(tensor.proto->name());
  if (!origin.moved || !origin.joined)
    return false;
  return origin.parameters.size() == 1 ? !hasDistinctRuns(file, tensor.data, 1)
                                       : repeatsSlice(file, tensor.data);
}

void WeightDecider::decideKinds() {
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
        kind == Origin::Derived && !weights.isMoved(tensor) && !origins.of(name).lookedUp;
    bool isNamed = data.count > 0 && isOwn && (isComputed || data.count == 1);
    tensor.isParameter = isNamed || ((data.isParameter() || biases.contains(name)) &&
                                     !weights.buffers.contains(name));
    tensor.mayRepeat = tensor.isParameter && mayRepeat(tensor);
    if (!tensor.isParameter || !isConstant(tensor))
      continue;
    tensor.isUnreadConstant = data.place == TensorData::declared || data.count > maxSearched;
    tensor.isParameter = tensor.isUnreadConstant;
  }
}

//===------------------------------------------------------------------------------------------===//
// What the exporter has done to a parameter
//===------------------------------------------------------------------------------------------===//

/// A folded weight gets its name in the model, and a linear layer's its layout there, so that weights
/// and checkpoints fit the model.
void WeightDecider::restoreNames() {
  for (const auto &[parameter, group] : weights.groups)
    if (group.size() == 1 && group.front() != parameter && !known(parameter))
      restoreName(parameter, group.front());
}

void WeightDecider::restoreName(const std::string &parameter, const std::string &name) {
  const Tensor &tensor = *known(name);
  const Origin &origin = origins.of(name);
  Shape shape = tensor.data.shape;
  Decomposed how = origin.allInner ? weights.decomposed(tensor) : Decomposed::Unknown;
  bool transposed = how == Decomposed::Transposed && origin.direct;
  if (transposed && shape.size() == 2 && tensor.data.isRaw())
    std::swap(shape[0], shape[1]);
  else if (how == Decomposed::Vector && !weights.isSliced(name) && shape.size() > 1 &&
           llvm::count(shape, 1) + 1 == static_cast<int64_t>(shape.size()))
    llvm::erase(shape, 1);
  else
    return;
  weights.originals[name] = {parameter, shape, transposed};
}

/// A bias that the exporter's record does not have is one that the exporter made.
void WeightDecider::findMadeBiases() {
  if (weights.exporter != Exporter::Dynamo)
    return;
  for (const onnx::NodeProto &node : graph.node()) {
    int bias = factsOf(node).biasOperand;
    if (bias < 0 || node.input_size() <= bias || !weights.isParameter(node.input(bias)) ||
        origins.of(node.input(bias)).kind != Origin::Unknown)
      continue;
    weights.madeBiases.push_back(node.input(bias));
    weights.remade.insert(node.input(bias));
    weights.remade.insert(node.input(1));
  }
}

} // namespace partita::importer
