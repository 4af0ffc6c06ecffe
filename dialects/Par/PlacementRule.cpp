//===- PlacementRule.cpp - what a rule says of placements
//-----------------------------------------===//
//
// Per mesh axis, independently. If the axis splits letter L in any operand (or, for letters that
// only results have, in a result):
//   - an operand with L must be sharded there; one without L must be replicated (its cotangent is
//     then a partial sum: Megatron's f, data parallelism's all-reduce);
//   - a result with L is sharded there; one without L, which the rule marks '+', is partial.
// If it splits nothing here, every rank computes all of it:
//   - a partial operand passes through an op that is linear in it; anything else is refused;
//   - with any replicated operand the results are replicated and so must be all operands.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

namespace {

class RuleApplication {
public:
  RuleApplication(const ShardRule &rule, ArrayRef<Layout> operands, ArrayRef<bool> carriesCotangent,
                  MutableArrayRef<Layout> results, RuleProblem &problem)
      : rule(rule), operands(operands), carriesCotangent(carriesCotangent), results(results),
        problem(problem) {}

  bool run() {
    llvm::SetVector<StringAttr> axes;
    for (const Layout &operand : operands)
      operand.axes(axes);
    for (const Layout &result : results)
      for (auto &split : result.splits)
        axes.insert(split.begin(), split.end());
    // Results take their splits operand by operand, so that the order of several axes on one
    // dimension is that of the operand.
    for (StringAttr axis : axes)
      if (!apply(axis))
        return false;
    return sameOrder();
  }

private:
  bool refuse(int operand, StringAttr axis, Kind wanted, const Twine &text) {
    problem.operand = operand;
    problem.axis = axis;
    problem.wanted = wanted;
    problem.text = text.str();
    return false;
  }

  std::string have(const Layout &layout, StringAttr axis) {
    int dim = layout.dimOf(axis);
    if (dim >= 0)
      return llvm::formatv("sharded({0})", dim).str();
    return toString(layout.kind(axis)).str();
  }

  bool findLetter(StringAttr axis, int &letter) {
    auto consider = [&](const RulePattern &pattern, const Layout &layout, int operand) {
      int dim = layout.dimOf(axis);
      if (dim < 0)
        return true;
      int found = pattern.dims[dim].outermost();
      if (found < 0)
        return refuse(
            operand, axis, Kind::Invariant,
            llvm::formatv(
                "dimension {0} of {1} has size one by the rule and cannot be split over {2}", dim,
                describe(operand), axis.getValue()));
      if (letter >= 0 && letter != found)
        return refuse(operand, axis, Kind::Invariant,
                      llvm::formatv("{0} splits letter {1} of {2} but letter {3} elsewhere",
                                    axis.getValue(), rule.letters[found].name, describe(operand),
                                    rule.letters[letter].name));
      letter = found;
      return true;
    };
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands))
      if (!consider(pattern, layout, static_cast<int>(i)))
        return false;
    for (auto [pattern, layout] : llvm::zip(rule.results, results))
      if (!consider(pattern, layout, -1))
        return false;
    return true;
  }

  static std::string describe(int operand) {
    return operand < 0 ? "a result" : llvm::formatv("operand {0}", operand).str();
  }

  bool apply(StringAttr axis) {
    int letter = -1;
    if (!findLetter(axis, letter))
      return false;
    return letter >= 0 ? applySplit(axis, letter) : applyWhole(axis);
  }

  bool applySplit(StringAttr axis, unsigned letter) {
    const RuleLetter &l = rule.letters[letter];
    if (l.never)
      return refuse(-1, axis, Kind::Invariant,
                    llvm::formatv("letter {0} cannot be split, it is split over {1}", l.name,
                                  axis.getValue()));
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands)) {
      int dim = pattern.dimOf(letter);
      Kind kind = layout.kind(axis);
      if (dim < 0 && pattern.contains(letter))
        return refuse(
            static_cast<int>(i), axis, Kind::Invariant,
            llvm::formatv(
                "letter {0} is split over {1}, but it is an inner factor of a dimension of "
                "operand {2}",
                l.name, axis.getValue(), i));
      bool right =
          dim >= 0 ? layout.dimOf(axis) == dim
                   : kind == Kind::Replicated || (kind == Kind::Invariant && !carriesCotangent[i]);
      if (right)
        continue;
      std::string want = dim >= 0 ? llvm::formatv("sharded({0})", dim).str() : "replicated";
      return refuse(
          static_cast<int>(i), axis, dim >= 0 ? Kind::Sharded : Kind::Replicated,
          llvm::formatv("letter {0} is split over {1}: operand {2} must be {3}, it is {4}", l.name,
                        axis.getValue(), i, want, have(layout, axis)));
    }
    for (auto [pattern, layout] : llvm::zip(rule.results, results)) {
      int dim = pattern.dimOf(letter);
      if (dim < 0)
        layout.set(axis, Kind::Partial);
      else if (layout.dimOf(axis) != dim)
        layout.shard(axis, dim);
    }
    return true;
  }

  bool applyWhole(StringAttr axis) {
    SmallVector<unsigned> partial, replicated;
    for (auto [i, layout] : llvm::enumerate(operands)) {
      if (layout.kind(axis) == Kind::Partial)
        partial.push_back(i);
      if (layout.kind(axis) == Kind::Replicated)
        replicated.push_back(i);
    }
    if (!partial.empty())
      return applyPartial(axis, partial);
    for (auto [i, layout] : llvm::enumerate(operands))
      if (!replicated.empty() && layout.kind(axis) == Kind::Invariant && carriesCotangent[i])
        return refuse(
            static_cast<int>(i), axis, Kind::Replicated,
            llvm::formatv(
                "operand {0} is replicated over {1}: operand {2} must be too, it is invariant",
                replicated.front(), axis.getValue(), i));
    for (Layout &layout : results)
      layout.set(axis, replicated.empty() ? Kind::Invariant : Kind::Replicated);
    return true;
  }

  bool applyPartial(StringAttr axis, ArrayRef<unsigned> partial) {
    Linearity linearity = rule.operands[partial.front()].linearity;
    for (auto [i, pattern] : llvm::enumerate(rule.operands)) {
      bool isPartial = llvm::is_contained(partial, i);
      Kind kind = operands[i].kind(axis);
      if (isPartial && (pattern.linearity == Linearity::None ||
                        (linearity == Linearity::Separately && i != partial.front())))
        return refuse(
            static_cast<int>(i), axis, Kind::Invariant,
            llvm::formatv("operand {0} is a partial sum over {1}, and the op is not linear in it",
                          i, axis.getValue()));
      if (isPartial)
        continue;
      if (linearity == Linearity::Together && pattern.linearity == Linearity::Together)
        return refuse(static_cast<int>(i), axis, Kind::Partial,
                      llvm::formatv("operand {0} is a partial sum over {1} but operand {2} is {3}",
                                    partial.front(), axis.getValue(), i, have(operands[i], axis)));
      if (kind == Kind::Invariant && carriesCotangent[i])
        return refuse(
            static_cast<int>(i), axis, Kind::Replicated,
            llvm::formatv(
                "operand {0} is a partial sum over {1}: operand {2} must be replicated, it is "
                "invariant",
                partial.front(), axis.getValue(), i));
    }
    for (Layout &layout : results)
      layout.set(axis, Kind::Partial);
    return true;
  }

  /// Several axes on one letter must be in one order everywhere: the order decides who has what.
  bool sameOrder() {
    SmallVector<ArrayRef<StringAttr>> order(rule.letters.size());
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands))
      for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits)) {
        if (dim.letters.empty())
          continue;
        ArrayRef<StringAttr> &known = order[dim.outermost()];
        if (known.empty())
          known = axes;
        else if (known != ArrayRef<StringAttr>(axes))
          return refuse(static_cast<int>(i), axes.front(), Kind::Sharded,
                        llvm::formatv("the axes on letter {0} are in another order in operand {1}",
                                      rule.letters[dim.outermost()].name, i));
      }
    for (auto [pattern, layout] : llvm::zip(rule.results, results))
      for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits))
        if (!dim.letters.empty() && !order[dim.outermost()].empty())
          axes.assign(order[dim.outermost()].begin(), order[dim.outermost()].end());
    return true;
  }

  const ShardRule &rule;
  ArrayRef<Layout> operands;
  ArrayRef<bool> carriesCotangent;
  MutableArrayRef<Layout> results;
  RuleProblem &problem;
};

SmallVector<int64_t> ranksOf(TypeRange types) {
  SmallVector<int64_t> ranks;
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    ranks.push_back(tensor ? tensor.getRank() : 0);
  }
  return ranks;
}

} // namespace

bool partita::par::placeResults(const ShardRule &rule, ArrayRef<Layout> operands,
                                ArrayRef<bool> carriesCotangent, MutableArrayRef<Layout> results,
                                RuleProblem &problem) {
  return RuleApplication(rule, operands, carriesCotangent, results, problem).run();
}

std::optional<ShardRule> partita::par::ruleOf(Operation *op, std::string &error) {
  auto sharded = dyn_cast<ShardInterface>(op);
  if (!sharded) {
    error = llvm::formatv("op '{0}' has no shard rule", op->getName().getStringRef()).str();
    return std::nullopt;
  }
  return ShardRule::parse(sharded.getShardRule(), ranksOf(op->getOperandTypes()),
                          ranksOf(op->getResultTypes()), error);
}

/// A constant all of whose elements are zero: also a partial sum of itself.
static bool isZero(Operation *op) {
  DenseElementsAttr value;
  return matchPattern(op, m_Constant(&value)) && value.isSplat() &&
         isa<FloatType>(value.getElementType()) && value.getSplatValue<APFloat>().isZero();
}

LogicalResult partita::verifyShardRule(Operation *op) {
  auto placed = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getEncoding();
  };
  std::string error;
  std::optional<ShardRule> rule = ruleOf(op, error);
  if (!rule)
    return op->emitOpError() << error;
  SmallVector<Layout, 2> operands, results;
  SmallVector<ArrayRef<int64_t>> operandShapes, resultShapes;
  for (Type type : op->getOperandTypes())
    operands.push_back(Layout::of(type));
  for (Type type : op->getResultTypes())
    results.push_back(Layout::of(type));
  for (const Layout &operand : operands)
    operandShapes.push_back(operand.shape);
  for (const Layout &result : results)
    resultShapes.push_back(result.shape);
  SmallVector<int64_t> sizes;
  if (!rule->letterSizes(operandShapes, resultShapes, sizes, error))
    return op->emitOpError() << error;
  if (llvm::none_of(op->getOperandTypes(), placed) && llvm::none_of(op->getResultTypes(), placed))
    return success();

  bool cotangents = true;
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    cotangents = !function->hasAttr(par::ParDialect::kNoCotangents);
  SmallVector<bool> carries;
  for (auto [operand, type] : llvm::zip(operands, op->getOperandTypes())) {
    carries.push_back(cotangents && isDifferentiable(type));
    if (!cotangents)
      operand = operand.valueOnly();
  }
  SmallVector<Layout, 2> expected;
  for (const Layout &result : results) {
    Layout &layout = expected.emplace_back(result.shape);
    layout.splits = result.splits; // letters that only results have
  }
  RuleProblem problem;
  if (!placeResults(*rule, operands, carries, expected, problem))
    return op->emitOpError() << "rule '" << cast<ShardInterface>(op).getShardRule()
                             << "': " << problem.text;
  for (auto [i, layout, type] : llvm::enumerate(expected, op->getResultTypes())) {
    Layout actual = Layout::of(type);
    if (!cotangents || !isDifferentiable(type)) {
      layout = layout.valueOnly();
      actual = actual.valueOnly();
    }
    if (isZero(op))
      actual.partial.clear();
    if (!(layout == actual))
      return op->emitOpError() << "rule '" << cast<ShardInterface>(op).getShardRule()
                               << "': result " << i << " is " << withLayout(type, layout)
                               << ", not " << type;
  }
  return success();
}

LogicalResult partita::par::inferFromRule(StringRef text, ValueRange operands,
                                          ArrayRef<Type> elements, std::optional<Location> loc,
                                          SmallVectorImpl<Type> &inferred) {
  std::string error;
  SmallVector<Layout, 2> layouts;
  SmallVector<ArrayRef<int64_t>> shapes;
  SmallVector<int64_t> resultRanks;
  // A result's rank is its pattern's: count its tokens, with `*` as long as in the operands.
  for (Value operand : operands)
    layouts.push_back(Layout::of(operand.getType()).valueOnly());
  for (const Layout &layout : layouts)
    shapes.push_back(layout.shape);
  StringRef operandText = text.split("->").first, resultText = text.split("->").second;
  auto count = [](StringRef pattern) {
    int64_t dims = 0;
    bool group = false, star = false;
    for (char c : pattern) {
      star |= c == '*';
      dims += c == '(' || (!group && (llvm::isAlpha(c) || c == '1'));
      group = c == '(' || (group && c != ')');
    }
    return std::pair<int64_t, bool>(dims, star);
  };
  int64_t leading = 0;
  SmallVector<StringRef> patterns, resultPatterns;
  operandText.split(patterns, ',');
  for (auto [pattern, layout] : llvm::zip(patterns, layouts))
    if (auto [dims, star] = count(pattern); star)
      leading = static_cast<int64_t>(layout.shape.size()) - dims;
  resultText.split(resultPatterns, ',');
  for (StringRef pattern : resultPatterns) {
    auto [dims, star] = count(pattern);
    resultRanks.push_back(dims + (star ? leading : 0));
  }
  auto rule = ShardRule::parse(text, ranksOf(operands.getTypes()), resultRanks, error);
  SmallVector<int64_t> sizes;
  if (!rule || !rule->letterSizes(shapes, {}, sizes, error))
    return emitOptionalError(loc, error);
  SmallVector<Layout, 2> results;
  for (const RulePattern &pattern : rule->results) {
    SmallVector<int64_t> shape;
    for (const RuleDim &dim : pattern.dims) {
      int64_t size = 1;
      for (unsigned l : dim.letters)
        size *= sizes[l];
      shape.push_back(size);
    }
    results.emplace_back(shape);
  }
  RuleProblem problem;
  SmallVector<bool> carries(layouts.size(), false);
  if (!placeResults(*rule, layouts, carries, results, problem))
    return emitOptionalError(loc, "rule '", text, "': ", problem.text);
  // One rank's size of a letter: that of any operand's dimension that is this letter alone.
  SmallVector<int64_t> local(rule->letters.size(), -1);
  for (auto [pattern, operand] : llvm::zip(rule->operands, operands))
    for (auto [dim, size] :
         llvm::zip(pattern.dims, cast<RankedTensorType>(operand.getType()).getShape()))
      if (dim.letters.size() == 1)
        local[dim.letters.front()] = size;
  for (auto [i, pattern] : llvm::enumerate(rule->results)) {
    SmallVector<int64_t> shape;
    for (const RuleDim &dim : pattern.dims) {
      int64_t size = 1;
      for (unsigned l : dim.letters)
        size *= local[l];
      shape.push_back(size);
    }
    Type element = elements[i];
    inferred.push_back(
        RankedTensorType::get(shape, element, results[i].encoding(element.getContext())));
  }
  return success();
}
