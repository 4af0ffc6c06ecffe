//===- RaiseActivation.cpp - GELU and SiLU in any spelling become one op ----------------------===//
//
// From every erf, tanh, sigmoid and exponential: the exits (values through which everything passes
// that is computed from it elementwise), the farthest first; from each exit the subgraphs that are
// a function of one tensor of the exit's type, the smallest first. The first that equals an
// activation at 256 random points is replaced. A function that comes within a hundredth of one
// without being it is reported, and one that would be it with another constant.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "lib/Raise/NumericCheck.h"
#include "lib/Raise/Remarks.h"
#include "partita/Raise/Passes.h"
#include <cmath>

namespace partita {
#define GEN_PASS_DEF_RAISEACTIVATION
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// Of the largest value: what is farther away is something else and no news, unless one constant is
/// all that is other, which is looked for a little farther.
constexpr double closeEnough = 0.01, oneConstant = 0.25;

struct Activation {
  StringRef op;
  Value (*build)(OpBuilder &builder, Location loc, Value x);
};

template <typename Op> Activation activation() {
  return {Op::getOperationName(), [](OpBuilder &builder, Location loc, Value x) -> Value {
            return Op::create(builder, loc, ValueRange{x}).getResult();
          }};
}

const Activation activations[] = {activation<tx::GeluOp>(), activation<tx::GeluTanhOp>(),
                                  activation<tx::QuickGeluOp>(), activation<tx::SiluOp>()};

bool isInterior(Operation *op) {
  if (auto cast = dyn_cast<tx::CastOp>(op))
    return isa<FloatType>(cast.getX().getType().getElementType()) &&
           isa<FloatType>(cast.getType().getElementType());
  return isa<ScalarInterface>(op);
}

/// How a candidate compares with the closest of the functions.
struct Outcome {
  const Activation *kind = activations;
  double error = 1;
  std::string blame;
  bool accepted = false;
};

struct RaiseActivationPass : partita::impl::RaiseActivationBase<RaiseActivationPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  Outcome compare(const Subgraph &subgraph);
  Outcome compute(const Subgraph &subgraph);
  std::optional<double> errorOf(const Subgraph &subgraph, const Activation &kind,
                                Substitution substitution);
  void raise(Operation *anchor, const Independent &independent);
  Report report(const Activation &kind) {
    return Report(kind.op.drop_front(3), remarks, numRaised, numMissed); // without "tx."
  }

  std::map<StructuralKey, Outcome> known;
};

} // namespace

std::optional<double> RaiseActivationPass::errorOf(const Subgraph &subgraph, const Activation &kind,
                                                   Substitution substitution) {
  Value x = subgraph.leaves.front();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(x.getType()).getShape();
  // One dimension of 256 sample points; the function is elementwise.
  SmallVector<int64_t> oldSizes(shape), newSizes(shape.size(), 1);
  Labels labels(shape.size());
  for (auto [i, size] : llvm::enumerate(shape))
    if (size != 1)
      labels[i].push_back(i);
  auto wide = llvm::find_if(labels, [](const auto &dim) { return !dim.empty(); });
  if (wide == labels.end())
    return std::nullopt;
  newSizes[wide->front()] = 256;
  NumericCheck check(subgraph, oldSizes, newSizes);
  check.inputs.push_back({x, labels, 0, 1.5});
  check.substitution = substitution;
  return check.error([&](OpBuilder &builder, ValueRange arguments) {
    return kind.build(builder, builder.getUnknownLoc(), arguments[0]);
  });
}

Outcome RaiseActivationPass::compute(const Subgraph &subgraph) {
  ++numChecks;
  double allowed = tolerance(getElementTypeOrSelf(subgraph.root.getType()));
  Outcome best;
  for (const Activation &kind : activations)
    if (auto error = errorOf(subgraph, kind, {}); error && *error < best.error)
      best = Outcome{&kind, *error, {}, *error <= allowed};
  if (!best.accepted && best.error < oneConstant)
    for (const Activation &kind : activations)
      if (best.blame.empty()) {
        best.blame = blameConstant(
            subgraph,
            {0.5, 1, 2, 3, 0.044715, 1.702, std::sqrt(0.5), std::sqrt(2.0), std::sqrt(2 / M_PI),
             2 * std::sqrt(2 / M_PI)},
            [&](Substitution substitution) { return errorOf(subgraph, kind, substitution); },
            allowed);
        if (!best.blame.empty())
          best.kind = &kind;
      }
  return best;
}

Outcome RaiseActivationPass::compare(const Subgraph &subgraph) {
  auto [found, isNew] = known.try_emplace(structuralKey(subgraph));
  if (isNew)
    found->second = compute(subgraph);
  return found->second;
}

void RaiseActivationPass::raise(Operation *anchor, const Independent &independent) {
  Outcome nearest;
  Value nearestRoot;
  SmallVector<Value> exits = findExits(anchor, isInterior);
  for (Value root : llvm::reverse(exits)) {
    if (root == anchor->getResult(0))
      continue;
    Outcome outcome;
    Value x;
    growBackward(
        root, isInterior, [](Value) { return false; }, independent,
        [&](const Subgraph &subgraph) {
          if (subgraph.leaves.size() != 1 || !llvm::is_contained(subgraph.ops, anchor) ||
              subgraph.leaves[0].getType() != root.getType())
            return true;
          outcome = compare(subgraph);
          bool isBlamed = !outcome.blame.empty(), wasBlamed = !nearest.blame.empty();
          if (isBlamed != wasBlamed ? isBlamed : outcome.error < nearest.error) {
            nearest = outcome;
            nearestRoot = root;
          }
          if (outcome.accepted)
            x = subgraph.leaves[0];
          return !x;
        });
    if (!x)
      continue;
    OpBuilder builder(root.getDefiningOp());
    root.replaceAllUsesWith(outcome.kind->build(builder, root.getLoc(), x));
    report(*outcome.kind).accept(root.getLoc(), outcome.kind->op);
    return;
  }
  if (nearest.error >= closeEnough && nearest.blame.empty())
    return;
  if (nearest.blame.empty())
    report(*nearest.kind)
        .reject(nearestRoot.getLoc(), "differs from " + nearest.kind->op + " by " +
                                          numberText(nearest.error) + " of its largest value");
  else
    report(*nearest.kind).reject(nearestRoot.getLoc(), nearest.blame);
}

void RaiseActivationPass::runOnOperation() {
  Independent independent(getOperation());
  SmallVector<Operation *> anchors;
  getOperation().walk([&](Operation *op) {
    if (isa<tx::ErfOp, tx::TanhOp, tx::SigmoidOp, tx::ExpOp>(op))
      anchors.push_back(op);
  });
  for (Operation *anchor : anchors)
    raise(anchor, independent);
  eraseDead(getOperation());
}
