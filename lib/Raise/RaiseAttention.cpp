//===- RaiseAttention.cpp - softmax(scale q k^T + mask) v becomes tx.attention ----------------===//
//
// For every softmax between two batched matrix products:
//   1. the first product is found backward through elementwise ops and reshapes, the second
//   forward;
//   2. what stands between scores and softmax is evaluated at every position: scale, mask (Mask.h);
//   3. q, k, v are traced through transposes, reshapes and scales to values with one dimension each
//   for
//      batch, sequence, head and feature (Layout.h);
//   4. the whole, from q, k and v to the second product, is computed over a few elements per
//      dimension and compared with the op that replaces it (NumericCheck.h).
// Layers with the same structure are computed once.
//
//===------------------------------------------------------------------------------------------===//

#include "IndexEvaluator.h"
#include "Mask.h"
#include "NumericCheck.h"
#include "Remarks.h"
#include "dialects/Par/Par.h"
#include "partita/Raise/Passes.h"
#include <cmath>

namespace partita {
#define GEN_PASS_DEF_RAISEATTENTION
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// An operand of attention: its source and which of the source's dimensions plays which role, -1
/// for one of size one that the source lacks or has anywhere.
struct Operand {
  Value source;
  enum Role { Batch, Sequence, Head, Feature };
  int dims[4] = {-1, -1, -1, -1};
  double scale = 1;
  int64_t size(Role role) const {
    return dims[role] < 0 ? 1 : cast<RankedTensorType>(source.getType()).getDimSize(dims[role]);
  }
};

/// One attention as the program spells it.
struct Match {
  tx::SoftmaxOp softmax;
  tx::BatchMatMulOp scores, product;
  Operand q, k, v;
  Subgraph subgraph; // from the operands' sources to the product
};

/// What was found out about a structure.
struct Outcome {
  double scale = 1;
  bool causal = false;
  std::string problem;
};

struct RaiseAttentionPass : partita::impl::RaiseAttentionBase<RaiseAttentionPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  Outcome compute(Match &match);
  std::map<StructuralKey, Outcome> known;
};

bool isInterior(Operation *op) { return isa<ScalarInterface, tx::CastOp, tx::ReshapeOp>(op); }

/// The product whose result `masked` is computed from, through interior ops; null if there is none.
/// What else `masked` is computed from goes to `others`.
tx::BatchMatMulOp findScores(Value masked, const Independent &independent,
                             SmallVector<Value> &others) {
  if (auto scores = masked.getDefiningOp<tx::BatchMatMulOp>())
    return scores;
  growBackward(
      masked, isInterior, [](Value) { return false; }, independent,
      [&](const Subgraph &subgraph) {
        others = subgraph.leaves;
        return true;
      });
  auto *found = llvm::find_if(others, [](Value v) { return v.getDefiningOp<tx::BatchMatMulOp>(); });
  if (found == others.end())
    return {};
  auto scores = found->getDefiningOp<tx::BatchMatMulOp>();
  others.erase(found);
  return scores;
}

/// The product whose left operand all that is made of the softmax ends in; null if there is none.
tx::BatchMatMulOp findProduct(tx::SoftmaxOp softmax) {
  for (Value weights : findExits(softmax, isInterior))
    for (Operation *user : weights.getUsers())
      if (auto product = dyn_cast<tx::BatchMatMulOp>(user); product && product.getA() == weights)
        return product;
  return {};
}

/// Sorts the dimensions of a traced matrix operand into roles: the last two are given, those before
/// are batch and head. False if a role would be played by two dimensions.
bool assignRoles(const View &view, Operand::Role last, Operand::Role beforeLast, Operand &operand) {
  operand.source = view.source;
  operand.scale = view.scale;
  auto assign = [&](Operand::Role role, ArrayRef<unsigned> atoms) {
    if (atoms.size() > 1 || (!atoms.empty() && operand.dims[role] >= 0))
      return false;
    if (!atoms.empty())
      operand.dims[role] = atoms[0];
    return true;
  };
  ArrayRef<Labels::value_type> labels(view.labels);
  if (labels.size() < 3 || !assign(last, labels.back()) ||
      !assign(beforeLast, labels[labels.size() - 2]))
    return false;
  ArrayRef<Labels::value_type> leading = labels.drop_back(2);
  if (leading.size() == 2)
    return assign(Operand::Batch, leading[0]) && assign(Operand::Head, leading[1]);
  // [batch * heads, ...]: the outer factor is the batch.
  if (leading.size() != 1 || leading[0].size() > 2)
    return false;
  ArrayRef<unsigned> atoms(leading[0]);
  return assign(Operand::Batch, atoms.take_front(1)) &&
         assign(Operand::Head, atoms.drop_front(std::min<size_t>(1, atoms.size())));
}

/// Do the operands' sizes make one attention? [b, s, h, d] x [b, t, h, d] x [b, t, h, e]
bool sizesFit(const Match &match) {
  using R = Operand::Role;
  for (R role : {R::Batch, R::Head})
    if (match.q.size(role) != match.k.size(role) || match.k.size(role) != match.v.size(role))
      return false;
  return match.q.size(R::Feature) == match.k.size(R::Feature) &&
         match.k.size(R::Sequence) == match.v.size(R::Sequence);
}

/// Fills `match` from its two products; a reason on failure.
std::string traceOperands(Match &match, const Independent &independent) {
  using R = Operand::Role;
  struct {
    Value value;
    R last, beforeLast;
    Operand &operand;
    bool throughScale;
    StringRef name;
  } const operands[] = {{match.scores.getA(), R::Feature, R::Sequence, match.q, true, "q"},
                        {match.scores.getB(), R::Sequence, R::Feature, match.k, true, "k"},
                        {match.product.getB(), R::Feature, R::Sequence, match.v, false, "v"}};
  for (const auto &[value, last, beforeLast, operand, throughScale, name] : operands)
    if (!assignRoles(traceView(value, throughScale), last, beforeLast, operand))
      return ("batch, heads, sequence and features of " + name + " are not one dimension each")
          .str();
  if (!sizesFit(match))
    return "q, k and v differ in batch, heads, sequence or features";
  Type element = getElementTypeOrSelf(match.product.getType());
  SmallVector<Value> sources{match.q.source, match.k.source, match.v.source};
  for (Value source : sources)
    if (getElementTypeOrSelf(source.getType()) != element)
      return "q, k, v and the result differ in element type";
  auto isAny = [](Operation *op) {
    return isInterior(op) || isa<tx::TransposeOp, tx::BatchMatMulOp, tx::SoftmaxOp>(op);
  };
  bool complete = false;
  growBackward(
      match.product, isAny, [&](Value v) { return llvm::is_contained(sources, v); }, independent,
      [&](const Subgraph &subgraph) {
        match.subgraph = subgraph;
        complete =
            llvm::all_of(subgraph.leaves, [&](Value v) { return llvm::is_contained(sources, v); });
        return !complete;
      },
      128);
  return complete ? "" : "its mask or its weights depend on more than q, k and v";
}

/// `operand` as [b, s, h, d].
Value inLayout(OpBuilder &builder, Location loc, Value source, const Operand &operand) {
  // Dimensions in the order of their roles; those of size one, which play none, in the gaps.
  SmallVector<int64_t> permutation, idle;
  for (int64_t i = 0; i < cast<RankedTensorType>(source.getType()).getRank(); ++i)
    if (!llvm::is_contained(operand.dims, i))
      idle.push_back(i);
  size_t nextIdle = 0;
  SmallVector<int64_t> shape;
  auto type = cast<RankedTensorType>(source.getType());
  for (int dim : operand.dims) {
    shape.push_back(dim < 0 ? 1 : type.getDimSize(dim));
    if (dim >= 0)
      permutation.push_back(dim);
    else if (nextIdle < idle.size())
      permutation.push_back(idle[nextIdle++]);
  }
  permutation.append(idle.begin() + nextIdle, idle.end());
  return createReshape(builder, loc, createTranspose(builder, loc, source, permutation), shape);
}

/// The replacement's value in place of the product's: [b, h, s, e], or [b * h, s, e].
Value build(OpBuilder &builder, Location loc, const Match &match, ValueRange sources,
            const Outcome &outcome, ArrayRef<int64_t> shape) {
  Value q = inLayout(builder, loc, sources[0], match.q),
        k = inLayout(builder, loc, sources[1], match.k),
        v = inLayout(builder, loc, sources[2], match.v);
  SmallVector<NamedAttribute> attributes{
      builder.getNamedAttr("scale", builder.getF64FloatAttr(outcome.scale))};
  if (outcome.causal)
    attributes.push_back(builder.getNamedAttr("causal", builder.getUnitAttr()));
  auto attention = tx::AttentionOp::create(builder, loc, ValueRange{q, k, v}, attributes);
  return createReshape(builder, loc,
                       createTranspose(builder, loc, attention.getOut(), {0, 2, 1, 3}), shape);
}

/// 1 / sqrt(d) when `scale` is that up to the rounding of the model's constants.
double rounded(double scale, int64_t features) {
  double usual = 1 / std::sqrt(static_cast<double>(features));
  return std::abs(scale - usual) <= 1e-6 * usual ? usual : scale;
}

/// Compares over two batch elements, three heads, a few positions and features.
std::optional<double> errorOf(Match &match, const Outcome &outcome) {
  using R = Operand::Role;
  enum Atom { B, S, T, H, D, E, count };
  int64_t sizes[count] = {match.q.size(R::Batch),    match.q.size(R::Sequence),
                          match.k.size(R::Sequence), match.q.size(R::Head),
                          match.q.size(R::Feature),  match.v.size(R::Feature)};
  const int64_t few[count] = {2, 5, 5, 3, 4, 6};
  SmallVector<int64_t> oldSizes(std::begin(sizes), std::end(sizes)), newSizes;
  for (auto [size, most] : llvm::zip_equal(sizes, few))
    newSizes.push_back(std::min<int64_t>(size, most));
  // The end of the corner that the mask is cut to must lie as far from the diagonal as in the
  // model.
  newSizes[T] = std::min(sizes[T], newSizes[S] + std::max<int64_t>(0, sizes[T] - sizes[S]));
  newSizes[S] = std::min(newSizes[S], newSizes[T]);
  unsigned s = S, t = sizes[S] == sizes[T] ? S : T, d = D, e = sizes[D] == sizes[E] ? D : E;
  NumericCheck check(match.subgraph, oldSizes, newSizes);
  auto add = [&](const Operand &operand, unsigned sequence, unsigned feature) {
    if (llvm::any_of(check.inputs,
                     [&](const ScratchInput &input) { return input.leaf == operand.source; }))
      return;
    const unsigned atoms[4] = {B, sequence, H, feature};
    Labels labels(cast<RankedTensorType>(operand.source.getType()).getRank());
    for (auto [dim, atom] : llvm::zip_equal(operand.dims, atoms))
      if (dim >= 0)
        labels[dim].push_back(atom);
    check.inputs.push_back({operand.source, labels});
  };
  add(match.q, s, d);
  add(match.k, t, d);
  add(match.v, t, e);
  IndexEvaluator evaluator;
  check.element = [&](Value value, ArrayRef<int64_t> index) {
    return evaluator.element(value, index);
  };
  return check.error([&](OpBuilder &builder, ValueRange arguments) {
    auto argument = [&](Value source) {
      auto *found = llvm::find_if(check.inputs,
                                  [&](const ScratchInput &input) { return input.leaf == source; });
      return arguments[found - check.inputs.begin()];
    };
    Value sources[] = {argument(match.q.source), argument(match.k.source),
                       argument(match.v.source)};
    SmallVector<int64_t> shape{newSizes[B], newSizes[H], newSizes[s], newSizes[e]};
    if (cast<RankedTensorType>(match.product.getType()).getRank() == 3)
      shape = {newSizes[B] * newSizes[H], newSizes[s], newSizes[e]};
    return build(builder, builder.getUnknownLoc(), match, sources, outcome, shape);
  });
}

} // namespace

Outcome RaiseAttentionPass::compute(Match &match) {
  ++numChecks;
  Mask mask = readMask(match.softmax.getX(), match.scores.getResult());
  Outcome outcome{
      rounded(mask.scale * match.q.scale * match.k.scale, match.q.size(Operand::Feature)),
      mask.causal, mask.problem};
  if (!outcome.problem.empty())
    return outcome;
  std::optional<double> error = errorOf(match, outcome);
  if (!error)
    outcome.problem = "it could not be computed over fewer elements to compare it";
  else if (*error > tolerance(getElementTypeOrSelf(match.product.getType())))
    outcome.problem = "differs from tx.attention with scale " + numberText(outcome.scale) + " by " +
                      numberText(*error) + " of its largest value";
  return outcome;
}

void RaiseAttentionPass::runOnOperation() {
  Independent independent(getOperation());
  Report report("attention", remarks, numRaised, numMissed);
  SmallVector<tx::SoftmaxOp> softmaxes;
  getOperation().walk([&](tx::SoftmaxOp op) { softmaxes.push_back(op); });
  for (tx::SoftmaxOp softmax : softmaxes) {
    Match match;
    match.softmax = softmax;
    match.product = findProduct(softmax);
    SmallVector<Value> others;
    match.scores =
        match.product ? findScores(softmax.getX(), independent, others) : tx::BatchMatMulOp();
    if (!match.product || !match.scores)
      continue;
    std::string problem;
    if (!others.empty())
      problem = "its mask depends on an input";
    else if (!match.product.getA().hasOneUse())
      problem = "its weights have other users";
    else
      problem = traceOperands(match, independent);
    if (!problem.empty()) {
      report.reject(softmax.getLoc(), problem);
      continue;
    }
    auto [found, isNew] = known.try_emplace(structuralKey(match.subgraph));
    if (isNew)
      found->second = compute(match);
    const Outcome &outcome = found->second;
    if (!outcome.problem.empty()) {
      report.reject(softmax.getLoc(), outcome.problem);
      continue;
    }
    OpBuilder builder(match.product);
    Value sources[] = {match.q.source, match.k.source, match.v.source};
    Value replacement = build(builder, match.product.getLoc(), match, sources, outcome,
                              match.product.getType().getShape());
    match.product.getResult().replaceAllUsesWith(replacement);
    report.accept(match.product.getLoc(), tx::AttentionOp::getOperationName());
  }
  eraseDead(getOperation());
}
