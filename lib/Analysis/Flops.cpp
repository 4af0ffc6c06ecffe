//===- Flops.cpp - counts a program's floating-point operations -------------------------------===//
//
// A rule's letters are the dimensions of the space that an op works on. A letter that is summed away
// and is in two operands makes it a matmul: two operations per point. An op of several matmuls says over
// which letters each goes. Of the other ops those count that compute: elementwise ops and reductions, by
// what they read.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Flops.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "partita/Analysis/Transfers.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;
using namespace partita;

static ArrayRef<int64_t> shapeOf(Type type, FlopsOf whose) {
  auto tensor = cast<RankedTensorType>(type);
  return whose == FlopsOf::Shards ? tensor.getShape() : par::fullType(tensor).getShape();
}

static double elements(ValueRange values, FlopsOf whose) {
  double most = 0;
  for (Value value : values)
    if (isa<RankedTensorType>(value.getType()))
      most = std::max(most, double(ShapedType::getNumElements(shapeOf(value.getType(), whose))));
  return most;
}

/// The sizes of a rule's letters; 1 of a letter that no operand has, which is looked up and not walked
/// through (the vocabulary of an embedding's gradient). None if the shapes contradict each other.
static std::optional<SmallVector<double>> sizesOf(Operation *op, const ShardRule &rule,
                                                  FlopsOf whose) {
  SmallVector<ArrayRef<int64_t>> shapes;
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      shapes.push_back(shapeOf(type, whose));
  SmallVector<int64_t> sizes;
  std::string error;
  if (!rule.letterSizes(ArrayRef(shapes).take_front(op->getNumOperands()),
                        ArrayRef(shapes).drop_front(op->getNumOperands()), sizes, error))
    return std::nullopt;
  SmallVector<double> result;
  for (unsigned letter = 0; letter < sizes.size(); ++letter) {
    auto contains = [&](const RulePattern &pattern) { return pattern.contains(letter); };
    bool isWalked = llvm::any_of(rule.operands, contains);
    result.push_back(isWalked ? std::max<double>(1, double(sizes[letter])) : 1);
  }
  return result;
}

/// Two operations for each computed point of the letters that a matmul goes over. A causal mask leaves all of them: it
/// hides half of a dense attention too, which counts in full by custom.
static double matmulsOf(ShardInterface op, const ShardRule &rule, FlopsOf whose) {
  static constexpr StringLiteral kOne[] = {""};
  ArrayRef<StringLiteral> matmuls = op.getMatmuls();
  if (matmuls.empty() && rule.contracts())
    matmuls = kOne;
  auto sizes = matmuls.empty() ? std::nullopt : sizesOf(op, rule, whose);
  if (!sizes)
    return 0;
  double sum = 0;
  for (StringRef beside : matmuls) {
    double points = 1;
    for (auto [letter, size] : llvm::zip(rule.letters, *sizes))
      if (letter.name != beside)
        points *= size;
    sum += 2 * points;
  }
  return sum * op.getComputedShare();
}

Flops partita::flopsOf(Operation *op, FlopsOf whose) {
  Flops flops;
  auto shard = dyn_cast<ShardInterface>(op);
  std::string error;
  const ShardRule *rule = shard ? par::ruleOf(op, error) : nullptr;
  if (!rule)
    return flops;
  flops.matmuls = matmulsOf(shard, *rule, whose);
  if (flops.matmuls == 0 && (rule->reduces() || isa<ScalarInterface>(op)))
    flops.elementwise = elements(op->getOperands(), whose);
  return flops;
}

Flops partita::countFlops(Operation *root) {
  Flops sum;
  root->walk([&](ShardInterface shard) {
    Flops flops = flopsOf(shard, FlopsOf::FullTensors);
    sum.matmuls += flops.matmuls;
    sum.elementwise += flops.elementwise;
  });
  return sum;
}

//===----------------------------------------------------------------------------------------------===//
// By layer
//===----------------------------------------------------------------------------------------------===//

static int64_t placeOf(Operation *op) {
  train::LayerAttr layer = train::LayerAttr::of(op);
  return layer ? layer.getNumber() : train::LayerAttr::kBefore;
}

/// Orders places as a program does: once per step, before the layers, the layers, after them.
static bool isEarlier(int64_t a, int64_t b) {
  auto rank = [](int64_t place) {
    return place >= 0                           ? place
           : place == train::LayerAttr::kOnce   ? -2
           : place == train::LayerAttr::kBefore ? -1
                                                : std::numeric_limits<int64_t>::max();
  };
  return rank(a) < rank(b);
}

namespace {
/// The values for which the loss's gradient is needed: those that depend on a trained parameter.
/// Ops must be noted in program order.
class Trained {
public:
  bool contains(Value value) const { return values.contains(value); }

  void note(Operation *op) {
    if (auto read = dyn_cast<train::ReadOp>(op)) {
      auto parameter =
          SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(read, read.getSymbolAttr());
      if (parameter && !parameter.getFrozen())
        values.insert(read.getResult());
      return;
    }
    // A region's results come from what it yields.
    ValueRange results =
        op->hasTrait<OpTrait::IsTerminator>() ? op->getParentOp()->getResults() : op->getResults();
    if (op->hasTrait<OpTrait::IsTerminator>() && op->getNumOperands() == results.size()) {
      for (auto [operand, result] : llvm::zip(op->getOperands(), results))
        if (contains(operand))
          values.insert(result);
    } else if (llvm::any_of(op->getOperands(), [&](Value each) { return contains(each); })) {
      for (Value result : results)
        if (isa<FloatType>(getElementTypeOrSelf(result.getType())))
          values.insert(result);
    }
  }

private:
  llvm::DenseSet<Value> values;
};
} // namespace

/// Matmuls of the backward pass: of each contraction one per operand whose gradient is needed; of
/// several that depend on one another, as attention's do, all.
static double backwardOf(Operation *op, double matmuls, const Trained &trained) {
  auto needs = [&](Value value) { return trained.contains(value); };
  if (matmuls == 0)
    return 0;
  if (cast<ShardInterface>(op).getMatmuls().size() > 1)
    return llvm::any_of(op->getOperands(), needs) ? 2 * matmuls : 0;
  return double(std::min<int64_t>(2, llvm::count_if(op->getOperands(), needs))) * matmuls;
}

std::vector<LayerWork> partita::workByLayer(func::FuncOp function) {
  std::map<int64_t, LayerWork, decltype(&isEarlier)> places(&isEarlier);
  auto at = [&](int64_t place) -> LayerWork & {
    LayerWork &work = places[place];
    work.place = place;
    return work;
  };
  llvm::StringSet<> seen;
  Trained trained;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    trained.note(op);
    for (Value operand : op->getOperands())
      if (auto read = operand.getDefiningOp<train::ReadOp>();
          read && seen.insert(read.getSymbol()).second &&
          isa_and_nonnull<train::ParameterOp>(
              SymbolTable::lookupNearestSymbolFrom(read, read.getSymbolAttr())))
        at(placeOf(op)).parameters += par::fullType(read.getType()).getNumElements();
    auto shard = dyn_cast<ShardInterface>(op);
    if (!shard)
      return;
    Flops flops = flopsOf(shard, FlopsOf::FullTensors);
    if (flops.matmuls == 0 && flops.elementwise == 0)
      return;
    double times = double(analysis::timesOf(op));
    LayerWork &work = at(placeOf(op));
    work.forward.matmuls += times * flops.matmuls;
    work.forward.elementwise += times * flops.elementwise;
    work.backward += times * backwardOf(op, flops.matmuls, trained);
  });
  int64_t layers = 0;
  for (const auto &[place, work] : places)
    layers = std::max(layers, place + 1);
  for (int64_t layer = 0; layer < layers; ++layer)
    at(layer); // also without work of its own
  std::vector<LayerWork> result;
  for (const auto &[place, work] : places)
    result.push_back(work);
  return result;
}

double partita::modelFlops(ArrayRef<LayerWork> work) {
  double sum = 0;
  for (const LayerWork &each : work)
    sum += each.forward.matmuls + each.backward;
  return sum;
}

//===----------------------------------------------------------------------------------------------===//
// Conversion to attributes and JSON
//===----------------------------------------------------------------------------------------------===//

void partita::noteWork(ModuleOp module, ArrayRef<LayerWork> work) {
  Builder b(module.getContext());
  SmallVector<Attribute> rows = llvm::map_to_vector(work, [&](const LayerWork &each) -> Attribute {
    return train::WorkAttr::get(b.getContext(), each.place, b.getF64FloatAttr(each.forward.matmuls),
                                b.getF64FloatAttr(each.forward.elementwise),
                                b.getF64FloatAttr(each.backward), each.parameters);
  });
  module->setAttr(train::TrainDialect::kWork, b.getArrayAttr(rows));
}

int64_t partita::countLayers(ArrayRef<LayerWork> work) {
  int64_t layers = 0;
  for (const LayerWork &each : work)
    layers = std::max(layers, each.place + 1);
  return layers;
}

std::vector<LayerWork> partita::notedWork(ModuleOp module) {
  std::vector<LayerWork> result;
  if (auto noted = module->getAttrOfType<ArrayAttr>(train::TrainDialect::kWork))
    for (auto each : noted.getAsRange<train::WorkAttr>())
      result.push_back(
          {each.getPlace(),
           {each.getMatmuls().getValueAsDouble(), each.getElementwise().getValueAsDouble()},
           each.getBackward().getValueAsDouble(),
           each.getParameters()});
  return result;
}

llvm::json::Array partita::workToJson(ArrayRef<LayerWork> work) {
  llvm::json::Array places;
  for (const LayerWork &each : work)
    places.push_back(llvm::json::Object{{"place", each.place},
                                        {"matmuls", each.forward.matmuls},
                                        {"elementwise", each.forward.elementwise},
                                        {"backward", each.backward},
                                        {"parameters", each.parameters}});
  return places;
}

std::vector<LayerWork> partita::workFromJson(const llvm::json::Array &places) {
  std::vector<LayerWork> result;
  for (const llvm::json::Value &value : places)
    if (const llvm::json::Object *each = value.getAsObject())
      result.push_back(
          {each->getInteger("place").value_or(0),
           {each->getNumber("matmuls").value_or(0), each->getNumber("elementwise").value_or(0)},
           each->getNumber("backward").value_or(0),
           each->getInteger("parameters").value_or(0)});
  return result;
}
