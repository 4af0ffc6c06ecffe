//===- RowNorm.cpp - see RowNorm.h ------------------------------------------------------------===//

#include "lib/Raise/RowNorm.h"

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// Of the largest value: what is farther away is another normalization and no news.
constexpr double closeEnough = 0.05;

bool isAnchor(Operation *op) {
  if (auto pow = dyn_cast<tx::PowOp>(op)) {
    std::optional<double> exponent = splatOf(pow.getB());
    return exponent && std::abs(*exponent) == 0.5;
  }
  return isa<tx::SqrtOp, tx::RsqrtOp>(op);
}

/// The constant added to what stands under the root; 0 if there is none.
double epsilonUnder(Operation *root) {
  Value value = root->getOperand(0);
  while (Operation *op = value.getDefiningOp()) {
    if (auto add = dyn_cast<tx::AddOp>(op)) {
      if (auto epsilon = splatOf(add.getB()))
        return *epsilon;
      return splatOf(add.getA()).value_or(0);
    }
    if (!isa<tx::CastOp, tx::BroadcastOp, tx::ReshapeOp>(op))
      return 0;
    value = op->getOperand(0);
  }
  return 0;
}

/// What a select decides by has one element too where x has.
bool isNoFloat(Value value) { return !isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// The row vector's length if `value` is one dimension and others of size one.
std::optional<int64_t> rowLength(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 0 || type.getShape().back() != type.getNumElements())
    return std::nullopt;
  return type.getNumElements();
}

} // namespace

bool RowNormRaiser::isInterior(Operation *op) {
  return isa<ScalarInterface, tx::CastOp, tx::BroadcastOp, tx::ReshapeOp, tx::ReduceMeanOp,
             tx::ReduceSumOp>(op);
}

Value RowNormRaiser::build(OpBuilder &builder, Location loc, Value x, Value weight, Value bias,
                           double epsilon) {
  auto type = cast<RankedTensorType>(x.getType());
  auto row = RankedTensorType::get(type.getShape().back(), type.getElementType());
  auto asRow = [&](Value value, double otherwise) {
    return value ? createReshape(builder, loc, value, row.getShape())
                 : tx::createSplat(builder, loc, row, otherwise);
  };
  Value rowWeight = asRow(weight, 1), rowBias = norm.hasBias ? asRow(bias, 0) : Value();
  return norm.build(builder, loc, x, rowWeight, rowBias, epsilon);
}

/// The ways in which a candidate's leaves could be x, weight and bias. None for rows of two: they are
/// normalized to 1 and -1, which their signs may equal, too.
SmallVector<RowNormRaiser::Roles> RowNormRaiser::choicesOf(const Subgraph &subgraph) {
  auto type = cast<RankedTensorType>(subgraph.root.getType());
  if (type.getRank() == 0 || type.getShape().back() < 3 ||
      subgraph.leaves.size() > 2u + norm.hasBias || llvm::any_of(subgraph.leaves, isNoFloat) ||
      isNoFloat(subgraph.root))
    return {};
  int x = -1;
  SmallVector<int> rows;
  for (auto [i, leaf] : llvm::enumerate(subgraph.leaves)) {
    if (leaf.getType() == type && x < 0)
      x = i;
    else if (rowLength(leaf) == type.getShape().back())
      rows.push_back(i);
    else
      return {};
  }
  if (x < 0)
    return {};
  if (rows.empty())
    return {{x, -1, -1}};
  if (!norm.hasBias)
    return {{x, rows[0], -1}};
  if (rows.size() == 1)
    return {{x, rows[0], -1}, {x, -1, rows[0]}};
  return {{x, rows[0], rows[1]}, {x, rows[1], rows[0]}};
}

std::optional<double> RowNormRaiser::errorOf(const Subgraph &subgraph, Roles roles, double epsilon,
                                             Substitution substitution) {
  // The rows are as long as in the model, since a mean may be a sum times a constant; few of them
  // do.
  ArrayRef<int64_t> shape = cast<RankedTensorType>(subgraph.root.getType()).getShape();
  SmallVector<int64_t> oldSizes(shape), newSizes;
  for (int64_t size : shape.drop_back())
    newSizes.push_back(std::min<int64_t>(size, 2));
  newSizes.push_back(shape.back());
  Labels full(shape.size());
  for (auto [i, size] : llvm::enumerate(shape))
    if (size != 1)
      full[i].push_back(i);
  NumericCheck check(subgraph, oldSizes, newSizes);
  auto addRow = [&](int leaf, double mean) {
    if (leaf < 0)
      return;
    Labels labels(cast<RankedTensorType>(subgraph.leaves[leaf].getType()).getRank());
    labels.back() = full.back();
    check.inputs.push_back({subgraph.leaves[leaf], labels, mean, 1});
  };
  check.inputs.push_back({subgraph.leaves[roles.x], full, 1, 2});
  addRow(roles.weight, 1);
  addRow(roles.bias, 0);
  check.substitution = substitution;
  return check.error([&](OpBuilder &builder, ValueRange arguments) {
    Value weight = roles.weight < 0 ? Value() : arguments[1],
          bias = roles.bias < 0 ? Value() : arguments.back();
    return build(builder, builder.getUnknownLoc(), arguments[0], weight, bias, epsilon);
  });
}

RowNormRaiser::Outcome RowNormRaiser::compute(const Subgraph &subgraph, ArrayRef<Roles> choices,
                                              double epsilon) {
  ++checks;
  double allowed = tolerance(getElementTypeOrSelf(subgraph.root.getType()));
  Outcome best;
  for (Roles roles : choices)
    if (auto error = errorOf(subgraph, roles, epsilon, {}); error && *error < best.error)
      best = Outcome{roles, *error, {}, *error <= allowed};
  // A NaN may be one constant's fault too: a negative number to the power of 2.0001.
  bool numberless = best.roles.x < 0;
  if (numberless)
    best.roles = choices.front();
  if (!best.accepted && (best.error < closeEnough || numberless)) {
    double count = cast<RankedTensorType>(subgraph.root.getType()).getShape().back();
    best.blame = blameConstant(
        subgraph, {0.5, -0.5, 1, 2, count, 1 / count},
        [&](Substitution substitution) {
          return errorOf(subgraph, best.roles, epsilon, substitution);
        },
        allowed);
    if (numberless && !best.blame.empty())
      best.error = 0; // nothing is nearer
  }
  return best;
}

void RowNormRaiser::raise(Operation *anchor, const Independent &independent) {
  double epsilon = epsilonUnder(anchor);
  Outcome nearest;
  Value nearestRoot;
  // A weight may be a constant.
  auto isLeaf = [&](Value value) {
    return independent.contains(value) && rowLength(value) && !splatOf(value);
  };
  SmallVector<Value> exits = findExits(anchor, isInterior);
  for (Value root : llvm::reverse(exits)) {
    Outcome outcome;
    SmallVector<Value> leaves;
    growBackward(root, isInterior, isLeaf, independent, [&](const Subgraph &subgraph) {
      SmallVector<Roles> choices;
      if (llvm::is_contained(subgraph.ops, anchor))
        choices = choicesOf(subgraph);
      if (choices.empty())
        return true;
      auto [found, isNew] = known.try_emplace(structuralKey(subgraph));
      if (isNew)
        found->second = compute(subgraph, choices, epsilon);
      outcome = found->second;
      if (outcome.error < nearest.error) {
        nearest = outcome;
        nearestRoot = root;
      }
      if (outcome.accepted)
        leaves = subgraph.leaves;
      return leaves.empty();
    });
    if (leaves.empty())
      continue;
    auto leaf = [&](int i) { return i < 0 ? Value() : leaves[i]; };
    OpBuilder builder(root.getDefiningOp());
    root.replaceAllUsesWith(build(builder, root.getLoc(), leaf(outcome.roles.x),
                                  leaf(outcome.roles.weight), leaf(outcome.roles.bias), epsilon));
    report.accept(root.getLoc(), norm.op);
    return;
  }
  if (nearest.error >= closeEnough) {
    explain(anchor, exits, independent, epsilon);
    return;
  }
  if (nearest.blame.empty())
    report.reject(nearestRoot.getLoc(), "differs from " + norm.op + " with epsilon " +
                                            numberText(epsilon) + " by " +
                                            numberText(nearest.error) + " of its largest value");
  else
    report.reject(nearestRoot.getLoc(), nearest.blame);
}

void RowNormRaiser::run(Operation *function) {
  Independent independent(function);
  SmallVector<Operation *> anchors;
  function->walk([&](Operation *op) {
    if (isAnchor(op))
      anchors.push_back(op);
  });
  for (Operation *anchor : anchors)
    raise(anchor, independent);
  eraseDead(function);
}
