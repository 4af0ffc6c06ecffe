//===- Bias.cpp - see Bias.h ------------------------------------------------------------------===//

#include "lib/Raise/Bias.h"
#include "dialects/Tx/Rounding.h"
#include "lib/Raise/Layout.h"
#include "lib/Raise/NumericCheck.h"
#include "partita/Raise/Subgraph.h"
#include <cmath>

using namespace mlir;
using namespace partita;
using namespace partita::raise;

/// Adding a score to a number like this, or replacing the sum by it, is the same in every
/// precision.
constexpr double lowest = -1e30;

static bool isLow(Value value, double &number) {
  std::optional<double> splat = splatOf(value);
  number = splat.value_or(0);
  return splat && *splat <= lowest;
}

namespace {

/// The step that `op` is, and the operand that comes from the scores.
struct Link {
  BiasStep step;
  Value from;
};

class BiasReader {
public:
  BiasReader(Value scores) { known[scores] = true; }

  /// Does the value depend on the scores?
  bool depends(Value value) {
    if (auto found = known.find(value); found != known.end())
      return found->second;
    Operation *op = value.getDefiningOp();
    bool any = op && isa<ScalarInterface, tx::CastOp, tx::ReshapeOp, tx::BroadcastOp>(op) &&
               llvm::any_of(op->getOperands(), [&](Value v) { return depends(v); });
    return known[value] = any;
  }

  std::optional<Link> link(Operation *op) {
    if (isa<tx::ReshapeOp>(op))
      return Link{{BiasStep::Scale, {}, 1, {}}, op->getOperand(0)};
    if (auto cast = dyn_cast<tx::CastOp>(op); cast && !tx::isOwnRounding(op)) {
      Type element = cast.getType().getElementType();
      if (isa<FloatType>(element) && isa<FloatType>(cast.getX().getType().getElementType()))
        return Link{{BiasStep::Cast, {}, 0, element}, cast.getX()};
    }
    if (auto select = dyn_cast<tx::SelectOp>(op))
      return selection(select);
    if (op->getNumOperands() != 2)
      return std::nullopt;
    Value a = op->getOperand(0), b = op->getOperand(1);
    bool first = depends(a);
    if (first == depends(b))
      return std::nullopt;
    return arithmetic(op, first ? a : b, first ? b : a, first);
  }

private:
  std::optional<Link> selection(tx::SelectOp select) {
    double number = 0;
    if (depends(select.getC()))
      return std::nullopt;
    if (depends(select.getA()) && isLow(select.getB(), number))
      return Link{{BiasStep::HideUnless, select.getC(), number, {}}, select.getA()};
    if (depends(select.getB()) && isLow(select.getA(), number))
      return Link{{BiasStep::HideWhere, select.getC(), number, {}}, select.getB()};
    return std::nullopt;
  }

  std::optional<Link> arithmetic(Operation *op, Value from, Value other, bool first) {
    double number = 0;
    if (isa<tx::AddOp>(op))
      return Link{{BiasStep::Add, other, 0, {}}, from};
    if (isa<tx::SubOp>(op) && first)
      return Link{{BiasStep::Subtract, other, 0, {}}, from};
    if (isa<tx::MaxOp>(op) && isLow(other, number))
      return Link{{BiasStep::AtLeast, {}, number, {}}, from};
    std::optional<double> splat = splatOf(other);
    if (isa<tx::MulOp>(op) && splat)
      return Link{{BiasStep::Scale, {}, *splat, {}}, from};
    if (isa<tx::DivOp>(op) && first && splat && *splat != 0)
      return Link{{BiasStep::Scale, {}, 1 / *splat, {}}, from};
    return std::nullopt;
  }

  DenseMap<Value, bool> known;
};

} // namespace

BiasRecipe raise::readBias(Value masked, Value scores) {
  BiasReader reader(scores);
  BiasRecipe recipe;
  for (Value value = masked; value != scores;) {
    Operation *op = value.getDefiningOp();
    std::optional<Link> link = op ? reader.link(op) : std::nullopt;
    if (!link) {
      recipe.problem = ("between the scores and the softmax stands " +
                        (op ? op->getName().getStringRef() : StringRef("an input")) +
                        ", which neither scales them nor adds to them nor hides them with a number "
                        "below -1e30")
                           .str();
      return recipe;
    }
    if (link->step.kind == BiasStep::Scale)
      recipe.scale *= link->step.number;
    recipe.steps.push_back(link->step);
    value = link->from;
  }
  std::reverse(recipe.steps.begin(), recipe.steps.end());
  return recipe;
}

SmallVector<Value> BiasRecipe::leaves() const {
  SmallVector<Value> values;
  for (const BiasStep &step : steps)
    if (step.operand && !llvm::is_contained(values, step.operand))
      values.push_back(step.operand);
  return values;
}

/// Operands of one shape for an elementwise op.
static void agree(OpBuilder &builder, Location loc, MutableArrayRef<Value> values) {
  SmallVector<int64_t> shape(4, 1);
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  for (Value value : values)
    for (auto [size, other] : llvm::zip_equal(shape, typeOf(value).getShape()))
      size = std::max(size, other);
  for (Value &value : values)
    if (typeOf(value).getShape() != ArrayRef<int64_t>(shape))
      value = tx::BroadcastOp::create(
          builder, loc, RankedTensorType::get(shape, typeOf(value).getElementType()), value);
}

template <typename Op>
static Value combine(OpBuilder &builder, Location loc, SmallVector<Value, 3> operands) {
  agree(builder, loc, operands);
  return Op::create(builder, loc, operands)->getResult(0);
}

Value BiasRecipe::build(OpBuilder &builder, Location loc, Type element,
                        function_ref<Value(Value)> leaf) const {
  Value bias;
  // Leaves have the element type of their step: that of the scores, changed by the casts so far.
  Type here = element;
  auto splat = [&](double number) {
    return tx::createSplat(builder, loc, RankedTensorType::get({1, 1, 1, 1}, here), number);
  };
  auto castTo = [&](Type to) {
    if (bias && getElementTypeOrSelf(bias.getType()) != to)
      bias = tx::CastOp::create(
          builder, loc,
          RankedTensorType::get(cast<RankedTensorType>(bias.getType()).getShape(), to), bias);
    here = to;
  };
  for (const BiasStep &step : steps)
    switch (step.kind) {
    case BiasStep::Scale:
      if (bias && step.number != 1)
        bias = combine<tx::MulOp>(builder, loc, {bias, splat(step.number)});
      break;
    case BiasStep::Add:
      bias =
          bias ? combine<tx::AddOp>(builder, loc, {bias, leaf(step.operand)}) : leaf(step.operand);
      break;
    case BiasStep::Subtract:
      bias = combine<tx::SubOp>(builder, loc, {bias ? bias : splat(0), leaf(step.operand)});
      break;
    case BiasStep::HideWhere:
      bias = combine<tx::SelectOp>(
          builder, loc, {leaf(step.operand), splat(step.number), bias ? bias : splat(0)});
      break;
    case BiasStep::HideUnless:
      bias = combine<tx::SelectOp>(
          builder, loc, {leaf(step.operand), bias ? bias : splat(0), splat(step.number)});
      break;
    case BiasStep::AtLeast:
      if (bias)
        bias = combine<tx::MaxOp>(builder, loc, {bias, splat(step.number)});
      break;
    case BiasStep::Cast:
      castTo(step.element);
      break;
    }
  castTo(element);
  return bias;
}

Value raise::compactLeaf(OpBuilder &builder, Location loc, Value leaf, int64_t batch,
                         int64_t heads) {
  while (auto broadcast = leaf.getDefiningOp<tx::BroadcastOp>())
    leaf = broadcast.getX();
  SmallVector<int64_t> shape(cast<RankedTensorType>(leaf.getType()).getShape());
  // [batch * heads, ...], if it still has that dimension.
  if (shape.size() == 3 && shape[0] != 1 && shape[0] == batch * heads) {
    shape[0] = heads;
    shape.insert(shape.begin(), batch);
  }
  while (shape.size() < 4)
    shape.insert(shape.begin(), 1);
  return createReshape(builder, loc, leaf, shape);
}
