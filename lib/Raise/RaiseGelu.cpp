//===- RaiseGelu.cpp - GELU in any spelling becomes tx.gelu or tx.gelu_tanh -------------------===//
//
// From every erf, tanh and sigmoid: the exits (values through which everything passes that is
// computed from it elementwise), the farthest first; from each exit the subgraphs that are a
// function of one tensor of the exit's type, the smallest first. The first that equals a GELU at
// 256 random points is replaced. A function that comes within a hundredth of one without being it
// is reported.
//
//===------------------------------------------------------------------------------------------===//

#include "NumericCheck.h"
#include "Remarks.h"
#include "dialects/Par/Par.h"
#include "partita/Raise/Passes.h"
#include <cmath>

namespace partita {
#define GEN_PASS_DEF_RAISEGELU
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// Of the largest value: what is farther away from GELU is something else (SiLU: 0.04) and no news.
constexpr double closeEnough = 0.01;

enum class Kind { Gelu, GeluTanh };
constexpr Kind kinds[] = {Kind::Gelu, Kind::GeluTanh};
StringRef nameOf(Kind kind) {
  return kind == Kind::Gelu ? tx::GeluOp::getOperationName() : tx::GeluTanhOp::getOperationName();
}
Value build(Kind kind, OpBuilder &builder, Location loc, Value x) {
  if (kind == Kind::Gelu)
    return tx::GeluOp::create(builder, loc, ValueRange{x}).getResult();
  return tx::GeluTanhOp::create(builder, loc, ValueRange{x}).getResult();
}

bool isInterior(Operation *op) {
  if (auto cast = dyn_cast<tx::CastOp>(op))
    return isa<FloatType>(cast.getX().getType().getElementType()) &&
           isa<FloatType>(cast.getType().getElementType());
  return isa<ScalarInterface>(op);
}

/// How a candidate compares with the closer of the two functions.
struct Outcome {
  Kind kind = Kind::Gelu;
  double error = 1;
  std::string blame;
  bool accepted = false;
};

struct RaiseGeluPass : partita::impl::RaiseGeluBase<RaiseGeluPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  Outcome compare(const Subgraph &subgraph);
  Outcome compute(const Subgraph &subgraph);
  std::optional<double> errorOf(const Subgraph &subgraph, Kind kind, Substitution substitution);
  void raise(Operation *anchor, const Independent &independent, Report &report);

  std::map<StructuralKey, Outcome> known;
};

} // namespace

std::optional<double> RaiseGeluPass::errorOf(const Subgraph &subgraph, Kind kind,
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
    return build(kind, builder, builder.getUnknownLoc(), arguments[0]);
  });
}

Outcome RaiseGeluPass::compute(const Subgraph &subgraph) {
  ++numChecks;
  double allowed = tolerance(getElementTypeOrSelf(subgraph.root.getType()));
  Outcome best;
  for (Kind kind : kinds)
    if (auto error = errorOf(subgraph, kind, {}); error && *error < best.error)
      best = Outcome{kind, *error, {}, *error <= allowed};
  if (!best.accepted && best.error < closeEnough)
    for (Kind kind : kinds)
      if (best.blame.empty()) {
        best.blame = blameConstant(
            subgraph,
            {0.5, 1, 2, 3, 0.044715, std::sqrt(0.5), std::sqrt(2.0), std::sqrt(2 / M_PI),
             2 * std::sqrt(2 / M_PI)},
            [&](Substitution substitution) { return errorOf(subgraph, kind, substitution); },
            allowed);
        if (!best.blame.empty())
          best.kind = kind;
      }
  return best;
}

Outcome RaiseGeluPass::compare(const Subgraph &subgraph) {
  auto [found, isNew] = known.try_emplace(structuralKey(subgraph));
  if (isNew)
    found->second = compute(subgraph);
  return found->second;
}

void RaiseGeluPass::raise(Operation *anchor, const Independent &independent, Report &report) {
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
          if (outcome.error < nearest.error) {
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
    root.replaceAllUsesWith(build(outcome.kind, builder, root.getLoc(), x));
    report.accept(root.getLoc(), nameOf(outcome.kind));
    return;
  }
  if (nearest.error >= closeEnough)
    return;
  if (nearest.blame.empty())
    report.reject(nearestRoot.getLoc(), "differs from " + nameOf(nearest.kind) + " by " +
                                            numberText(nearest.error) + " of its largest value");
  else
    report.reject(nearestRoot.getLoc(), nearest.blame);
}

void RaiseGeluPass::runOnOperation() {
  Independent independent(getOperation());
  Report report("gelu", remarks, numRaised, numMissed);
  SmallVector<Operation *> anchors;
  getOperation().walk([&](Operation *op) {
    if (isa<tx::ErfOp, tx::TanhOp, tx::SigmoidOp>(op))
      anchors.push_back(op);
  });
  for (Operation *anchor : anchors)
    raise(anchor, independent, report);
  eraseDead(getOperation());
}
