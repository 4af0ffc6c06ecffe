//===- RaiseAttention.cpp - softmax(scale q k^T + mask) v becomes tx.attention ----------------===//
//
// For every softmax between two batched matmuls:
//   1. the first matmul is found backward through elementwise ops and reshapes, the second
//   forward;
//   2. what stands between scores and softmax is evaluated at every position: scale, mask (Mask.h);
//      what depends on an input, or is no mask, becomes a bias (Bias.h);
//   3. a dropout between softmax and the second matmul becomes the op's, which numbers the same
//      elements;
//   4. q, k, v are traced through transposes, reshapes and scales to values with one dimension each
//      for batch, sequence, head and feature (Layout.h); k and v may have fewer heads, repeated;
//   5. all of it, from q, k and v to the second matmul, is computed over a few elements per
//      dimension, nothing dropped, and compared with the op that replaces it (NumericCheck.h).
// Layers with the same structure are computed once.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "lib/Raise/Bias.h"
#include "lib/Raise/Mask.h"
#include "lib/Raise/NumericCheck.h"
#include "lib/Raise/Operand.h"
#include "lib/Raise/Remarks.h"
#include "partita/Raise/IndexEvaluator.h"
#include "partita/Raise/Matmuls.h"
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

/// One attention as the program spells it.
struct Match {
  tx::SoftmaxOp softmax;
  tx::BatchMatMulOp scores, matmul;
  tx::DropoutOp dropout; // of the weights, or null
  Operand q, k, v;
  Subgraph subgraph; // from the operands' sources and the bias's leaves to the matmul
  BiasRecipe recipe;
  SmallVector<Value> biasLeaves; // none where the mask is to be read by value
};

/// What was found out about a structure.
struct AttentionOutcome {
  double scale = 1;
  bool causal = false, zeroHidden = false;
  int64_t window = 0;
  std::string problem;
};

struct RaiseAttentionPass : partita::impl::RaiseAttentionBase<RaiseAttentionPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  AttentionOutcome compute(Match &match);
  const AttentionOutcome &outcomeOf(Match &match);
  std::string match(tx::SoftmaxOp softmax, const Independent &independent, Match &match,
                    AttentionOutcome &outcome);
  std::map<StructuralKey, AttentionOutcome> known;
};

constexpr StringLiteral dependsOnMore = "its mask or its weights depend on more than q, k and v";

bool isBetweenOrDropout(Operation *op) { return isBetween(op) || isa<tx::DropoutOp>(op); }

/// Finds the dropout of the weights: only reshapes and casts may follow, which see its zeros and factors
/// as the values do. A reason on failure.
std::string findDropout(Match &match) {
  Operation *op = match.matmul.getA().getDefiningOp();
  while (isa_and_nonnull<tx::ReshapeOp, tx::CastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  match.dropout = dyn_cast_or_null<tx::DropoutOp>(op);
  for (Operation *each : match.subgraph.ops)
    if (isa<tx::DropoutOp>(each) && each != match.dropout)
      return "a dropout of its weights is not the last of what is computed from them";
  return "";
}

/// Do the operands' sizes make one attention? [b, s, h, d] x [b, t, h, d] x [b, t, h, e]
bool sizesFit(const Match &match) {
  using R = Operand::Role;
  int64_t heads = match.k.size(R::Head) * match.k.repeats;
  if (match.q.size(R::Batch) != match.k.size(R::Batch) ||
      match.k.size(R::Batch) != match.v.size(R::Batch) || match.q.repeats != 1 ||
      match.q.size(R::Head) != heads || match.k.repeats != match.v.repeats ||
      match.k.size(R::Head) != match.v.size(R::Head))
    return false;
  return match.q.size(R::Feature) == match.k.size(R::Feature) &&
         match.k.size(R::Sequence) == match.v.size(R::Sequence);
}

/// Where q, k and v merge batch and heads into one dimension: is it one sample's heads? Scores or masks of
/// [batch, heads, queries, keys] tell, else the tensor [1, ...] that q is a view of.
bool showsOneSample(Match &match) {
  SmallVector<Value> scores{match.softmax.getX()};
  scores.append(match.recipe.leaves());
  for (Value value : scores)
    if (auto type = cast<RankedTensorType>(value.getType()); type.getRank() == 4)
      return type.getDimSize(0) == 1;
  return llvm::any_of(traceViews(match.scores.getA(), true), [](const View &view) {
    auto type = cast<RankedTensorType>(view.source.getType());
    return type.getRank() == 4 && type.getDimSize(0) == 1;
  });
}

/// Fills `match.q`, `k` and `v`; a reason on failure.
std::string traceRoles(Match &match) {
  using R = Operand::Role;
  struct {
    Value value;
    R last, beforeLast;
    Operand &operand;
    bool throughScale;
    StringRef name;
  } const operands[] = {{match.scores.getA(), R::Feature, R::Sequence, match.q, true, "q"},
                        {match.scores.getB(), R::Sequence, R::Feature, match.k, true, "k"},
                        {match.matmul.getB(), R::Feature, R::Sequence, match.v, false, "v"}};
  std::string first;
  bool oneSample = showsOneSample(match);
  for (bool merged : {oneSample, !oneSample}) {
    std::string problem;
    for (const auto &[value, last, beforeLast, operand, throughScale, name] : operands) {
      SmallVector<View> views = traceViews(value, throughScale);
      if (!llvm::any_of(llvm::reverse(views), [&, last = last, beforeLast = beforeLast,
                                               &operand = operand](const View &view) {
            return assignRoles(view, last, beforeLast, merged, operand);
          })) {
        problem = ("batch, heads, sequence and features of " + name + " are not one dimension each")
                      .str();
        break;
      }
    }
    if (problem.empty() && !sizesFit(match))
      problem = "q, k and v differ in batch, heads, sequence or features";
    if (problem.empty())
      return "";
    if (first.empty())
      first = problem;
  }
  return first;
}

/// Fills `match` from its two matmuls; a reason on failure.
std::string traceOperands(Match &match, const Independent &independent) {
  if (std::string problem = traceRoles(match); !problem.empty())
    return problem;
  Type element = getElementTypeOrSelf(match.matmul.getType());
  SmallVector<Value> sources{match.q.source, match.k.source, match.v.source};
  for (Value source : sources)
    if (getElementTypeOrSelf(source.getType()) != element)
      return "q, k, v and the result differ in element type";
  sources.append(match.biasLeaves);
  auto isAny = [](Operation *op) {
    return isBetweenOrDropout(op) ||
           isa<tx::TransposeOp, tx::BroadcastOp, tx::BatchMatMulOp, tx::SoftmaxOp>(op);
  };
  bool complete = false;
  growBackward(
      match.matmul, isAny, [&](Value v) { return llvm::is_contained(sources, v); }, independent,
      [&](const Subgraph &subgraph) {
        match.subgraph = subgraph;
        complete =
            llvm::all_of(subgraph.leaves, [&](Value v) { return llvm::is_contained(sources, v); });
        return !complete;
      },
      128);
  return complete ? findDropout(match) : dependsOnMore.str();
}

/// The replacement's value in place of the matmul's: [b, h, s, e], or [b * h, s, e].
Value build(OpBuilder &builder, Location loc, const Match &match, ValueRange sources, Value bias,
            const AttentionOutcome &outcome, ArrayRef<int64_t> shape) {
  Value q = inLayout(builder, loc, sources[0], match.q),
        k = inLayout(builder, loc, sources[1], match.k),
        v = inLayout(builder, loc, sources[2], match.v);
  auto unit = [&](bool holds) { return holds ? builder.getUnitAttr() : UnitAttr(); };
  tx::DropoutOp dropout = match.dropout;
  auto attention = tx::AttentionOp::create(
      builder, loc, q, k, v, bias, /*first_keys=*/Value(), /*first_head=*/Value(), /*key=*/Value(),
      /*micro=*/Value(),
      /*first=*/Value(), builder.getF64FloatAttr(outcome.scale), unit(outcome.causal),
      outcome.window ? builder.getI64IntegerAttr(outcome.window) : IntegerAttr(),
      unit(outcome.zeroHidden), dropout ? dropout.getRatioAttr() : FloatAttr(),
      dropout ? dropout.getIdAttr() : IntegerAttr(), /*fullShape=*/nullptr, /*blocks=*/nullptr,
      /*ring=*/nullptr);
  return createReshape(builder, loc,
                       createTranspose(builder, loc, attention.getOut(), {0, 2, 1, 3}), shape);
}

/// 1 / sqrt(d) when `scale` is that up to the rounding of the model's constants.
double rounded(double scale, int64_t features) {
  double usual = 1 / std::sqrt(static_cast<double>(features));
  return std::abs(scale - usual) <= 1e-6 * usual ? usual : scale;
}

/// The two computations of a match over two batch elements, a few heads, positions and features.
class Comparison {
public:
  Comparison(Match &match, const AttentionOutcome &outcome) : match(match), outcome(outcome) {}

  std::optional<double> error();
  /// After none: where it ended, or null.
  Operation *stuckAt = nullptr;

private:
  enum Atom : unsigned { B, S, T, Keys, Group, D, E, count };

  void chooseSizes();
  void addInputs();
  Value replacement(OpBuilder &builder, ValueRange arguments);
  Value argument(ValueRange arguments, Value leaf) {
    auto *found =
        llvm::find_if(inputs, [&](const ScratchInput &input) { return input.leaf == leaf; });
    return arguments[found - inputs.begin()];
  }
  /// The labels of a dimension of the scores.
  Labels::value_type label(std::initializer_list<unsigned> atoms) {
    Labels::value_type result;
    for (unsigned atom : atoms)
      if (oldSizes[atom] != 1)
        result.push_back(atom);
    return result;
  }
  /// The atoms of q's sequence and k's, of q's features and v's: one where they are equally long.
  unsigned s() const { return S; }
  unsigned t() const { return oldSizes[S] == oldSizes[T] ? S : T; }
  unsigned d() const { return D; }
  unsigned e() const { return oldSizes[D] == oldSizes[E] ? D : E; }

  Match &match;
  const AttentionOutcome &outcome;
  SmallVector<int64_t> oldSizes, newSizes;
  SmallVector<ScratchInput> inputs;
};

void Comparison::chooseSizes() {
  using R = Operand::Role;
  const int64_t sizes[count] = {match.q.size(R::Batch),    match.q.size(R::Sequence),
                                match.k.size(R::Sequence), match.k.size(R::Head),
                                match.k.repeats,           match.q.size(R::Feature),
                                match.v.size(R::Feature)};
  const int64_t few[count] = {2, 5, 5, match.k.repeats > 1 ? 2 : 3, 2, 4, 6};
  oldSizes.assign(std::begin(sizes), std::end(sizes));
  for (auto [size, most] : llvm::zip_equal(sizes, few))
    newSizes.push_back(std::min<int64_t>(size, most));
  // The corner that the mask is cut to must end as far from the diagonal as in the model, and reach
  // after a window.
  if (outcome.window)
    newSizes[S] = std::min<int64_t>(oldSizes[S], std::max<int64_t>(5, outcome.window + 3));
  newSizes[T] =
      std::min(oldSizes[T], newSizes[S] + std::max<int64_t>(0, oldSizes[T] - oldSizes[S]));
  newSizes[S] = std::min(newSizes[S], newSizes[T]);
}

void Comparison::addInputs() {
  auto add = [&](const Operand &operand, unsigned sequence, unsigned feature, bool grouped) {
    if (llvm::any_of(inputs,
                     [&](const ScratchInput &input) { return input.leaf == operand.source; }))
      return;
    Labels labels(cast<RankedTensorType>(operand.source.getType()).getRank());
    const Labels::value_type atoms[4] = {label({B}), label({sequence}),
                                         grouped ? label({Keys}) : label({Keys, Group}),
                                         label({feature})};
    for (auto [dim, role] : llvm::zip_equal(operand.dims, atoms))
      if (dim >= 0)
        labels[dim] = role;
    inputs.push_back({operand.source, labels});
  };
  add(match.q, s(), d(), false);
  add(match.k, t(), d(), true);
  add(match.v, t(), e(), true);
  for (Value leaf : match.biasLeaves) {
    Labels labels{label({B}), label({Keys, Group}), label({s()}), label({t()})};
    if (cast<RankedTensorType>(leaf.getType()).getRank() == 3) {
      labels[0].append(labels[1].begin(), labels[1].end());
      labels.erase(labels.begin() + 1);
    }
    // A condition holds for most elements, so that every query sees a key.
    bool condition = getElementTypeOrSelf(leaf.getType()).isInteger(1);
    inputs.push_back({leaf, labels, condition ? 2.5 : 0.0, 1});
  }
}

Value Comparison::replacement(OpBuilder &builder, ValueRange arguments) {
  Location loc = builder.getUnknownLoc();
  int64_t heads = newSizes[Keys] * newSizes[Group];
  Value bias;
  if (!match.biasLeaves.empty())
    bias = match.recipe.build(
        builder, loc, getElementTypeOrSelf(match.matmul.getType()), [&](Value leaf) {
          return createReshape(builder, loc, argument(arguments, leaf),
                               {newSizes[B], heads, newSizes[s()], newSizes[t()]});
        });
  Value sources[] = {argument(arguments, match.q.source), argument(arguments, match.k.source),
                     argument(arguments, match.v.source)};
  SmallVector<int64_t> shape{newSizes[B], heads, newSizes[s()], newSizes[e()]};
  if (cast<RankedTensorType>(match.matmul.getType()).getRank() == 3)
    shape = {newSizes[B] * heads, newSizes[s()], newSizes[e()]};
  return build(builder, loc, match, sources, bias, outcome, shape);
}

std::optional<double> Comparison::error() {
  chooseSizes();
  addInputs();
  NumericCheck check(match.subgraph, oldSizes, newSizes);
  check.inputs = inputs;
  if (match.k.repeats > 1)
    check.repeatAtom = Group;
  IndexEvaluator evaluator;
  check.element = [&](Value value, ArrayRef<int64_t> index) {
    return evaluator.element(value, index);
  };
  std::optional<double> found = check.error(
      [&](OpBuilder &builder, ValueRange arguments) { return replacement(builder, arguments); });
  stuckAt = check.stuckAt;
  return found;
}

/// Why a candidate could not be compared: "... of 8x2x16x16 to 4x2x2x16x16 ...".
static std::string describeStuck(Operation *op) {
  if (!op)
    return "it could not be computed over fewer elements to compare it";
  auto shapeOf = [](Value value) {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleave(cast<RankedTensorType>(value.getType()).getShape(), os, "x");
    return text;
  };
  return "it could not be computed over fewer elements to compare it: its " +
         op->getName().getStringRef().str() + " of " + shapeOf(op->getOperand(0)) + " to " +
         shapeOf(op->getResult(0)) + " is of other dimensions than attention's";
}

} // namespace

AttentionOutcome RaiseAttentionPass::compute(Match &match) {
  ++numChecks;
  AttentionOutcome outcome;
  double scale = match.recipe.scale;
  if (match.biasLeaves.empty()) {
    Mask mask = readMask(match.softmax.getX(), match.scores.getResult());
    outcome.problem = mask.problem;
    outcome.causal = mask.causal;
    outcome.window = mask.window;
    scale = mask.scale;
  } else {
    // The guard of rows without a visible key, which are not a number otherwise.
    outcome.zeroHidden =
        llvm::any_of(match.subgraph.ops, [](Operation *op) { return isa<tx::IsNanOp>(op); });
  }
  outcome.scale = rounded(scale * match.q.scale * match.k.scale, match.q.size(Operand::Feature));
  if (!outcome.problem.empty())
    return outcome;
  Comparison comparison(match, outcome);
  std::optional<double> error = comparison.error();
  if (!error)
    outcome.problem = describeStuck(comparison.stuckAt);
  else if (*error > tolerance(getElementTypeOrSelf(match.matmul.getType())))
    outcome.problem = "differs from tx.attention with scale " + numberText(outcome.scale) + " by " +
                      numberText(*error) + " of its largest value";
  return outcome;
}

const AttentionOutcome &RaiseAttentionPass::outcomeOf(Match &match) {
  auto [found, isNew] = known.try_emplace(structuralKey(match.subgraph));
  if (isNew)
    found->second = compute(match);
  return found->second;
}

/// Fills `match` and `outcome`: the mask by value where it can be, else as a bias. A reason on
/// failure.
std::string RaiseAttentionPass::match(tx::SoftmaxOp softmax, const Independent &independent,
                                      Match &match, AttentionOutcome &outcome) {
  if (!match.matmul.getA().hasOneUse())
    return "its weights have other users";
  match.recipe = readBias(softmax.getX(), match.scores.getResult());
  bool known =
      llvm::all_of(match.recipe.leaves(), [&](Value leaf) { return independent.contains(leaf); });
  std::string problem;
  if (known || !match.recipe.problem.empty()) {
    problem = traceOperands(match, independent);
    if (problem.empty()) {
      outcome = outcomeOf(match);
      problem = outcome.problem;
    } else if (problem == dependsOnMore && !match.recipe.problem.empty()) {
      problem = match.recipe.problem;
    }
    if (problem.empty() || !match.recipe.problem.empty())
      return problem;
  }
  // Not known by value, or no mask: a bias.
  match.biasLeaves = match.recipe.leaves();
  if (match.biasLeaves.empty())
    return problem;
  if (std::string other = traceOperands(match, independent); !other.empty())
    return known ? problem : other;
  outcome = outcomeOf(match);
  return outcome.problem.empty() || !known ? outcome.problem : problem;
}

void RaiseAttentionPass::runOnOperation() {
  Independent independent(getOperation());
  Report report("attention", remarks, numRaised, numMissed);
  getOperation().walk([&](tx::BatchMatMulOp matmul) {
    if (Operation *other = findOtherWeights(matmul, independent))
      report.reject(other->getLoc(), "its weights are made of the scores by " +
                                         other->getName().getStringRef() +
                                         ", they would be by tx.softmax");
  });
  SmallVector<tx::SoftmaxOp> softmaxes;
  getOperation().walk([&](tx::SoftmaxOp op) { softmaxes.push_back(op); });
  for (tx::SoftmaxOp softmax : softmaxes) {
    Match match;
    match.softmax = softmax;
    match.matmul = findMatmul(softmax, isBetweenOrDropout);
    if (match.matmul)
      match.scores = findScores(softmax.getX(), independent);
    if (!match.scores) {
      if (std::string problem = explainAxis(softmax, independent); !problem.empty())
        report.reject(softmax.getLoc(), problem);
      continue;
    }
    AttentionOutcome outcome;
    std::string problem = this->match(softmax, independent, match, outcome);
    if (!problem.empty()) {
      report.reject(softmax.getLoc(), problem);
      continue;
    }
    OpBuilder builder(match.matmul);
    Location loc = match.matmul.getLoc();
    Value bias;
    if (!match.biasLeaves.empty())
      bias = match.recipe.build(
          builder, softmax.getLoc(), getElementTypeOrSelf(match.matmul.getType()), [&](Value leaf) {
            return compactLeaf(builder, softmax.getLoc(), leaf, match.q.size(Operand::Batch),
                               match.q.size(Operand::Head));
          });
    Value sources[] = {match.q.source, match.k.source, match.v.source};
    Value replacement =
        build(builder, loc, match, sources, bias, outcome, match.matmul.getType().getShape());
    match.matmul.getResult().replaceAllUsesWith(replacement);
    report.accept(loc, tx::AttentionOp::getOperationName());
  }
  eraseDead(getOperation());
}
