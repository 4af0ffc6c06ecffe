//===- Flops.cpp - how much a program computes ------------------------------------------------===//
//
// A rule's letters are the dimensions of the space that an op works on. A letter that is summed
// away and stands in two operands makes it a contraction: two operations per point. Of the others
// those count that compute: elementwise ops and reductions, by what they read. The composite whose
// matmuls its rule does not tell is attention.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Flops.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "partita/Analysis/Transfers.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;
using namespace partita;

static double elements(ValueRange values) {
  double most = 0;
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      most = std::max(most, double(par::wholeType(type).getNumElements()));
  return most;
}

/// The product of the sizes of all letters of a contraction; nothing of another op.
static std::optional<double> contraction(Operation *op, const ShardRule &rule) {
  if (!rule.contracts())
    return std::nullopt;
  SmallVector<int64_t> sizes;
  std::string error;
  if (!par::letterSizes(rule, op, sizes, error))
    return std::nullopt;
  double points = 1;
  for (int64_t size : sizes)
    points *= std::max<double>(size, 1);
  return points;
}

/// Queries with keys, scores with values.
static double attentionFlops(tx::AttentionOp op) {
  ArrayRef<int64_t> q = par::wholeType(op.getQ().getType()).getShape(),
                    v = par::wholeType(op.getV().getType()).getShape();
  double scores = double(q[0]) * double(q[1]) * double(q[2]) * double(v[1]);
  return 2 * scores * (double(q[3]) + double(v[3]));
}

static Flops flopsOf(ShardInterface shard) {
  Operation *op = shard;
  Flops flops;
  std::string error;
  const ShardRule *rule = par::ruleOf(op, error);
  if (!rule)
    return flops;
  if (auto attention = dyn_cast<tx::AttentionOp>(op))
    flops.products = attentionFlops(attention);
  else if (std::optional<double> points = contraction(op, *rule))
    flops.products = 2 * *points;
  else if (rule->reduces() || isa<ScalarInterface>(op))
    flops.elementwise = elements(op->getOperands());
  return flops;
}

Flops partita::countFlops(Operation *root) {
  Flops sum;
  root->walk([&](ShardInterface shard) {
    Flops flops = flopsOf(shard);
    sum.products += flops.products;
    sum.elementwise += flops.elementwise;
  });
  return sum;
}

//===----------------------------------------------------------------------------------------------===//
// By layers
//===----------------------------------------------------------------------------------------------===//

static int64_t placeOf(Operation *op) {
  train::LayerAttr layer = train::LayerAttr::of(op);
  return layer ? layer.getNumber() : train::LayerAttr::kBefore;
}

/// In the order of a program: what is done once, in front, the layers, behind.
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
/// Which values the loss's gradient is needed of: those that come of a parameter that is trained.
/// Ops must be shown in the order of the program.
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
    // A region's results come of what it yields.
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
/// attention, whose matmuls depend on one another, all.
static double backwardOf(Operation *op, double products, const Trained &trained) {
  auto needs = [&](Value value) { return trained.contains(value); };
  if (products == 0)
    return 0;
  if (auto attention = dyn_cast<tx::AttentionOp>(op))
    return llvm::any_of(ValueRange{attention.getQ(), attention.getK(), attention.getV()}, needs)
               ? 2 * products
               : 0;
  return double(std::min<int64_t>(2, llvm::count_if(op->getOperands(), needs))) * products;
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
        at(placeOf(op)).parameters += par::wholeType(read.getType()).getNumElements();
    auto shard = dyn_cast<ShardInterface>(op);
    if (!shard)
      return;
    Flops flops = flopsOf(shard);
    if (flops.products == 0 && flops.elementwise == 0)
      return;
    double times = double(analysis::timesOf(op));
    LayerWork &work = at(placeOf(op));
    work.forward.products += times * flops.products;
    work.forward.elementwise += times * flops.elementwise;
    work.backward += times * backwardOf(op, flops.products, trained);
  });
  std::vector<LayerWork> result;
  for (const auto &[place, work] : places)
    result.push_back(work);
  return result;
}

double partita::modelFlops(ArrayRef<LayerWork> work) {
  double sum = 0;
  for (const LayerWork &each : work)
    sum += each.forward.products + each.backward;
  return sum;
}

//===----------------------------------------------------------------------------------------------===//
// As attributes and as JSON
//===----------------------------------------------------------------------------------------------===//

void partita::noteWork(ModuleOp module, ArrayRef<LayerWork> work) {
  Builder b(module.getContext());
  SmallVector<Attribute> rows = llvm::map_to_vector(work, [&](const LayerWork &each) -> Attribute {
    return train::WorkAttr::get(b.getContext(), each.place,
                                b.getF64FloatAttr(each.forward.products),
                                b.getF64FloatAttr(each.forward.elementwise),
                                b.getF64FloatAttr(each.backward), each.parameters);
  });
  if (!rows.empty())
    module->setAttr(train::TrainDialect::kWork, b.getArrayAttr(rows));
}

std::vector<LayerWork> partita::notedWork(ModuleOp module) {
  std::vector<LayerWork> result;
  if (auto noted = module->getAttrOfType<ArrayAttr>(train::TrainDialect::kWork))
    for (auto each : noted.getAsRange<train::WorkAttr>())
      result.push_back(
          {each.getPlace(),
           {each.getProducts().getValueAsDouble(), each.getElementwise().getValueAsDouble()},
           each.getBackward().getValueAsDouble(),
           each.getParameters()});
  return result;
}

llvm::json::Array partita::workToJson(ArrayRef<LayerWork> work) {
  llvm::json::Array places;
  for (const LayerWork &each : work)
    places.push_back(llvm::json::Object{{"place", each.place},
                                        {"products", each.forward.products},
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
           {each->getNumber("products").value_or(0), each->getNumber("elementwise").value_or(0)},
           each->getNumber("backward").value_or(0),
           each->getInteger("parameters").value_or(0)});
  return result;
}
