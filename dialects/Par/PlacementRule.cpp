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
    SmallVector<ArrayRef<int64_t>> operandShapes, resultShapes;
    for (const Layout &operand : operands)
      operandShapes.push_back(operand.shape);
    for (const Layout &result : results)
      resultShapes.push_back(result.shape);
    if (!rule.letterSizes(operandShapes, resultShapes, sizes, problem.text))
      return false;
    llvm::SetVector<StringAttr> axes;
    for (const Layout &operand : operands)
      operand.axes(axes);
    for (const Layout &result : results)
      for (const DimSplit &splits : result.splits)
        for (const AxisSplit &split : splits)
          axes.insert(split.axis);
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

  static std::string sharded(int dim, int64_t blocks) {
    return blocks == 1 ? llvm::formatv("sharded({0})", dim).str()
                       : llvm::formatv("sharded({0}) in {1} blocks", dim, blocks).str();
  }

  static std::string have(const Layout &layout, StringAttr axis) {
    int dim = layout.dimOf(axis);
    return dim >= 0 ? sharded(dim, layout.blocksOf(axis)) : toString(layout.kind(axis)).str();
  }

  static std::string describe(int operand) {
    return operand < 0 ? "a result" : llvm::formatv("operand {0}", operand).str();
  }

  /// The letter that `axis` splits in one operand or result becomes `found`, if that agrees.
  bool consider(StringAttr axis, const RulePattern &pattern, const Layout &layout, int operand,
                std::optional<LetterSplit> &found) {
    int dim = layout.dimOf(axis);
    if (dim < 0 || pattern.firstIndexOf >= 0)
      return true;
    if (pattern.dims[dim].letters.empty())
      return refuse(
          operand, axis, Kind::Invariant,
          llvm::formatv(
              "dimension {0} of {1} has size one by the rule and cannot be split over {2}", dim,
              describe(operand), axis.getValue()));
    auto split = splitLetter(pattern.dims[dim], layout.blocksOf(axis), sizes);
    if (!split)
      return refuse(operand, axis, Kind::Invariant,
                    llvm::formatv("{0} splits {1} blocks of dimension {2} of {3}, between which "
                                  "no letter begins",
                                  axis.getValue(), layout.blocksOf(axis), dim, describe(operand)));
    if (found && found->letter != split->letter)
      return refuse(operand, axis, Kind::Invariant,
                    llvm::formatv("{0} splits letter {1} of {2} but letter {3} elsewhere",
                                  axis.getValue(), rule.letters[split->letter].name,
                                  describe(operand), rule.letters[found->letter].name));
    if (!found)
      found = split;
    return true;
  }

  bool apply(StringAttr axis) {
    std::optional<LetterSplit> split;
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands))
      if (!consider(axis, pattern, layout, static_cast<int>(i), split))
        return false;
    for (auto [pattern, layout] : llvm::zip(rule.results, results))
      if (!consider(axis, pattern, layout, -1, split))
        return false;
    return split ? applySplit(axis, *split) : applyWhole(axis);
  }

  bool applySplit(StringAttr axis, LetterSplit split) {
    const RuleLetter &l = rule.letters[split.letter];
    if (l.never || l.byForm)
      return refuse(-1, axis, Kind::Invariant,
                    llvm::formatv("letter {0} cannot be split, it is split over {1}", l.name,
                                  axis.getValue()));
    if ((l.unbroken || l.lacksFirstIndex) && split.blocks != 1)
      return refuse(-1, axis, Kind::Invariant,
                    llvm::formatv("letter {0} cannot be split in blocks, it is split over {1}",
                                  l.name, axis.getValue()));
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands))
      if (!checkOperand(axis, split, static_cast<int>(i), pattern, layout))
        return false;
    for (auto [pattern, layout] : llvm::zip(rule.results, results)) {
      int dim = pattern.dimOf(split.letter);
      if (dim < 0) {
        layout.set(axis, l.greatest ? Kind::Greatest : Kind::Partial);
        continue;
      }
      int64_t blocks = blocksOfDim(pattern.dims[dim], split, sizes);
      if (layout.dimOf(axis) != dim || layout.blocksOf(axis) != blocks)
        layout.shard(axis, dim, blocks);
    }
    return true;
  }

  bool checkOperand(StringAttr axis, LetterSplit split, int i, const RulePattern &pattern,
                    const Layout &layout) {
    const RuleLetter &l = rule.letters[split.letter];
    bool isFirstIndex = pattern.firstIndexOf == static_cast<int>(split.letter);
    if (isFirstIndex && split.blocks != 1)
      return refuse(-1, axis, Kind::Invariant,
                    llvm::formatv("letter {0} cannot be split in blocks, for its pieces need one "
                                  "first index",
                                  l.name));
    int dim = isFirstIndex ? 0 : pattern.dimOf(split.letter);
    Kind kind = layout.kind(axis);
    int64_t blocks = dim < 0 || isFirstIndex ? 1 : blocksOfDim(pattern.dims[dim], split, sizes);
    bool right =
        dim >= 0 ? layout.dimOf(axis) == dim && layout.blocksOf(axis) == blocks
                 : kind == Kind::Replicated || (kind == Kind::Invariant && !carriesCotangent[i]);
    if (right)
      return true;
    return refuse(i, axis, dim >= 0 ? Kind::Sharded : Kind::Replicated,
                  llvm::formatv("letter {0} is split over {1}: operand {2} must be {3}, it is {4}",
                                l.name, axis.getValue(), i,
                                dim >= 0 ? sharded(dim, blocks) : "replicated",
                                have(layout, axis)));
  }

  bool applyWhole(StringAttr axis) {
    SmallVector<unsigned> partial, replicated;
    for (auto [i, layout] : llvm::enumerate(operands)) {
      if (layout.kind(axis) == Kind::Greatest)
        return refuse(static_cast<int>(i), axis, Kind::Invariant,
                      llvm::formatv("operand {0} is a maximum per rank of {1}, to be completed "
                                    "before it is used",
                                    i, axis.getValue()));
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

  /// The axes on each letter of a split dimension, in order.
  SmallVector<std::pair<unsigned, DimSplit>> lettersOf(const RuleDim &dim, const DimSplit &axes) {
    SmallVector<std::pair<unsigned, DimSplit>> found;
    for (const AxisSplit &axis : axes)
      if (auto split = splitLetter(dim, axis.blocks, sizes)) {
        if (found.empty() || found.back().first != split->letter)
          found.push_back({split->letter, {}});
        found.back().second.push_back({axis.axis, split->blocks});
      }
    return found;
  }

  /// Several axes on one letter must be in one order everywhere: the order decides who has what.
  bool sameOrder() {
    SmallVector<DimSplit> order(rule.letters.size());
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands))
      for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits))
        for (auto &[letter, split] : lettersOf(dim, axes)) {
          if (order[letter].empty())
            order[letter] = split;
          else if (!(order[letter] == split))
            return refuse(
                static_cast<int>(i), axes.front().axis, Kind::Sharded,
                llvm::formatv("the axes on letter {0} are in another order in operand {1}",
                              rule.letters[letter].name, i));
        }
    for (auto [pattern, layout] : llvm::zip(rule.results, results))
      for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits)) {
        DimSplit ordered;
        for (unsigned letter : dim.letters)
          for (const AxisSplit &split : order[letter])
            ordered.push_back({split.axis, blocksOfDim(dim, {letter, split.blocks}, sizes)});
        if (ordered.size() == axes.size())
          axes = ordered;
      }
    return true;
  }

  const ShardRule &rule;
  ArrayRef<Layout> operands;
  ArrayRef<bool> carriesCotangent;
  MutableArrayRef<Layout> results;
  RuleProblem &problem;
  SmallVector<int64_t> sizes; // of the letters
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

std::optional<LetterSplit> partita::par::splitLetter(const RuleDim &dim, int64_t blocks,
                                                     ArrayRef<int64_t> letterSizes) {
  for (unsigned letter : dim.letters) {
    int64_t size = letterSizes[letter];
    if (blocks < size || letter == dim.letters.back())
      return size > 0 && size % blocks == 0 ? std::optional(LetterSplit{letter, blocks})
                                            : std::nullopt;
    if (size <= 0 || blocks % size != 0)
      return std::nullopt;
    blocks /= size;
  }
  return std::nullopt;
}

int64_t partita::par::blocksOfDim(const RuleDim &dim, LetterSplit split,
                                  ArrayRef<int64_t> letterSizes) {
  int64_t blocks = split.blocks;
  for (unsigned letter : dim.letters) {
    if (letter == split.letter)
      break;
    blocks *= letterSizes[letter];
  }
  return blocks;
}

bool partita::par::letterSizes(const ShardRule &rule, Operation *op,
                               SmallVectorImpl<int64_t> &sizes, std::string &error) {
  SmallVector<Layout, 2> layouts;
  for (Type type : op->getOperandTypes())
    layouts.push_back(Layout::of(type));
  for (Type type : op->getResultTypes())
    layouts.push_back(Layout::of(type));
  SmallVector<ArrayRef<int64_t>> shapes;
  for (const Layout &layout : layouts)
    shapes.push_back(layout.shape);
  return rule.letterSizes(ArrayRef(shapes).take_front(op->getNumOperands()),
                          ArrayRef(shapes).drop_front(op->getNumOperands()), sizes, error);
}

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

std::string partita::par::unevenProblem(const ShardRule &rule, ArrayRef<int64_t> letterSizes,
                                        ArrayRef<Layout> operands, ArrayRef<Layout> results,
                                        MeshAttr mesh) {
  std::string problem;
  auto keepsZero = [&](unsigned letter) {
    auto knowsFirst = [&](const RulePattern &pattern) {
      return pattern.firstIndexOf == static_cast<int>(letter);
    };
    if (rule.letters[letter].lacksFirstIndex || rule.letters[letter].byForm ||
        llvm::any_of(rule.operands, knowsFirst))
      return true;
    bool any = false;
    for (const RulePattern &pattern : rule.operands)
      if (pattern.contains(letter)) {
        if (pattern.linearity == Linearity::None)
          return false;
        any = true;
      }
    return any && !rule.letters[letter].greatest;
  };
  auto visit = [&](const RulePattern &pattern, const Layout &layout) {
    for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits))
      for (const AxisSplit &axis : axes) {
        auto split = splitLetter(dim, axis.blocks, letterSizes);
        int64_t parts = mesh.sizeOf(axis.axis.getValue());
        if (!split || dim.perPiece || letterSizes[split->letter] / split->blocks % parts == 0 ||
            !problem.empty())
          continue;
        if (dim.letters.size() != 1 || axes.size() != 1 || !keepsZero(split->letter))
          problem = llvm::formatv("letter {0} of size {1} does not divide over mesh axis {2} of "
                                  "size {3}",
                                  rule.letters[split->letter].name, letterSizes[split->letter],
                                  axis.axis.getValue(), parts);
      }
  };
  for (auto [pattern, layout] : llvm::zip(rule.operands, operands))
    if (pattern.firstIndexOf < 0)
      visit(pattern, layout);
  for (auto [pattern, layout] : llvm::zip(rule.results, results))
    visit(pattern, layout);
  return problem;
}

/// A constant all of whose elements are zero: also a partial sum of itself.
static bool isZero(Operation *op) {
  DenseElementsAttr value;
  return matchPattern(op, m_Constant(&value)) && value.isSplat() &&
         isa<FloatType>(value.getElementType()) && value.getSplatValue<APFloat>().isZero();
}

/// A split letter whose first index the op does not know: what to say of it.
static std::string missingFirstIndex(const ShardRule &rule, ArrayRef<Layout> operands,
                                     ArrayRef<Layout> results) {
  auto visit = [&](const RulePattern &pattern, const Layout &layout) -> std::string {
    for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits))
      for (unsigned letter : dim.letters)
        if (rule.letters[letter].lacksFirstIndex && !axes.empty())
          return llvm::formatv("letter {0} is split over {1}, so the op needs the first index of "
                               "this rank's piece (par.first_index)",
                               rule.letters[letter].name, axes.front().axis.getValue());
    return {};
  };
  std::string text;
  for (auto [pattern, layout] : llvm::zip(rule.operands, operands))
    if (text.empty())
      text = visit(pattern, layout);
  for (auto [pattern, layout] : llvm::zip(rule.results, results))
    if (text.empty())
      text = visit(pattern, layout);
  return text;
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
  if (std::string missing = missingFirstIndex(*rule, operands, expected); !missing.empty())
    return op->emitOpError() << missing;
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
  // An inner factor is on every rank what it is in the whole.
  for (auto [size, whole] : llvm::zip(local, sizes))
    size = size < 0 ? whole : size;
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
