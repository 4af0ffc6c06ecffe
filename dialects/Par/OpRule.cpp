//===- OpRule.cpp - checks an op against its rule ---------------------------------------------===//
//
// Applies a rule of placements (PlacementRule.cpp) to an op: whether its types agree with it,
// whether its dimensions may be split unevenly, and its result types.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Par/Placement.h"
#include "dialects/Par/Reasons.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace partita;
using namespace partita::par;

/// Returns the ranks of the full values: a flat shard has one dimension, whatever it is a shard of.
static SmallVector<int64_t> ranksOf(TypeRange types) {
  SmallVector<int64_t> ranks;
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    auto placement = tensor ? dyn_cast_or_null<PlacementAttr>(tensor.getEncoding()) : nullptr;
    ranks.push_back(placement ? static_cast<int64_t>(placement.getShape().size())
                    : tensor  ? tensor.getRank()
                              : 0);
  }
  return ranks;
}

const ShardRule *partita::par::ruleOf(Operation *op, std::string &error) {
  auto sharded = dyn_cast<ShardInterface>(op);
  if (!sharded) {
    error = llvm::formatv("op '{0}' has no shard rule", op->getName().getStringRef()).str();
    return nullptr;
  }
  return ShardRule::get(sharded.getShardRule(), ranksOf(op->getOperandTypes()),
                        ranksOf(op->getResultTypes()), error);
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

//===----------------------------------------------------------------------------------------------===//
// Padding
//
// In the last rank's shard, elements past the end of the full value are zero in every value. An op
// keeps them zero if it
//
//   - knows the first index of its shard, and hence where the full value ends;
//   - is linear in all operands that have the letter; or
//   - is a function of one number that is zero at zero, and not too steep there for its gradient.
//
// A value that is repeated along the letter, or a splat, has the same elements in the padding as
// everywhere. It may only be combined with an operand in which the op is linear and that is zero
// there (logits that are multiplied with or divided by a number).
//===----------------------------------------------------------------------------------------------===//

/// Returns true if no operand has the letter.
static bool repeats(const ShardRule &rule, unsigned letter) {
  return llvm::none_of(rule.operands,
                       [&](const RulePattern &pattern) {
                         return pattern.contains(letter) ||
                                pattern.firstIndexOf == static_cast<int>(letter);
                       }) &&
         !rule.letters[letter].lacksFirstIndex && !rule.letters[letter].byForm;
}

/// Returns true if the value is constant along the dimension, however that is split.
static bool isRepeatedAlong(Value value, unsigned dim) {
  while (auto f = value.getDefiningOp<FOp>())
    value = f.getValue();
  Operation *op = value.getDefiningOp();
  std::string error;
  const ShardRule *rule = op ? ruleOf(op, error) : nullptr;
  return rule &&
         llvm::any_of(rule->results[cast<OpResult>(value).getResultNumber()].dims[dim].letters,
                      [&](unsigned letter) { return repeats(*rule, letter); });
}

/// Returns true if f(0) = 0, and f' is bounded there: 0 f'(0) = 0.
static bool isFlatAtZero(Operation *op) {
  auto scalar = dyn_cast<ScalarInterface>(op);
  if (!scalar || op->getNumOperands() != 1 || scalar.evaluateScalar({0.0}) != 0.0)
    return false;
  constexpr double step = 1e-30, steepest = 1e3;
  return llvm::all_of(ArrayRef<double>{step, -step}, [&](double x) {
    return std::abs(scalar.evaluateScalar({x})) <= steepest * step;
  });
}

static bool keepsPadding(Operation *op, const ShardRule &rule, unsigned letter) {
  if (repeats(rule, letter)) {
    DenseElementsAttr value;
    return (!matchPattern(op, m_Constant(&value)) || value.isSplat()) &&
           llvm::all_of(op->getUsers(),
                        [](Operation *user) { // uses of what leaves a loop are unknown
                          return !user->hasTrait<OpTrait::IsTerminator>() ||
                                 isa<FunctionOpInterface>(user->getParentOp());
                        });
  }
  if (llvm::none_of(rule.operands, [&](const RulePattern &p) { return p.contains(letter); }) ||
      rule.letters[letter].lacksFirstIndex ||
      (rule.letters[letter].byForm && !rule.letters[letter].never) ||
      llvm::any_of(rule.operands, [&](const RulePattern &pattern) {
        return pattern.firstIndexOf == static_cast<int>(letter);
      }))
    return true;
  bool isProduct = false, others = true;
  for (auto [pattern, operand] : llvm::zip(rule.operands, op->getOperands()))
    if (int dim = pattern.dimOf(letter); dim >= 0) {
      bool isZero = !isRepeatedAlong(operand, dim);
      isProduct |= isZero && pattern.linearity == Linearity::Separately;
      others &= pattern.linearity == Linearity::None
                    ? !isZero
                    : isZero || pattern.linearity == Linearity::Separately;
    }
  bool isSum = llvm::all_of(llvm::zip(rule.operands, op->getOperands()), [&](auto pair) {
    int dim = std::get<0>(pair).dimOf(letter);
    return dim < 0 || (std::get<0>(pair).linearity == Linearity::Together &&
                       !isRepeatedAlong(std::get<1>(pair), dim));
  });
  return ((isProduct && others) || isSum || isFlatAtZero(op)) && !rule.letters[letter].max;
}

std::string partita::par::unevenProblem(Operation *op, const ShardRule &rule,
                                        ArrayRef<int64_t> letterSizes, ArrayRef<Layout> operands,
                                        ArrayRef<Layout> results, MeshAttr mesh) {
  std::string problem;
  auto visit = [&](const RulePattern &pattern, const Layout &layout) {
    for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits))
      for (const AxisSplit &axis : axes) {
        auto split = splitLetter(dim, axis.blocks, letterSizes);
        int64_t parts = mesh.sizeOf(axis.axis.getValue());
        auto divides = [&](int64_t block) { return block % parts == 0; };
        if (!split || dim.perShard || !problem.empty() ||
            llvm::all_of(split->blocks.sizesIn(letterSizes[split->letter]), divides))
          continue;
        if (dim.letters.size() != 1 || dim.isPart() || axes.size() != 1 ||
            !keepsPadding(op, rule, split->letter))
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

/// Returns true for a constant whose elements are all zero, which is also a partial sum of itself.
static bool isZero(Operation *op) {
  DenseElementsAttr value;
  return matchPattern(op, m_Constant(&value)) && value.isSplat() &&
         isa<FloatType>(value.getElementType()) && value.getSplatValue<APFloat>().isZero();
}

/// Describes a split letter whose first index the op does not know.
static std::string missingFirstIndex(const ShardRule &rule, ArrayRef<Layout> operands,
                                     ArrayRef<Layout> results) {
  auto visit = [&](const RulePattern &pattern, const Layout &layout) -> std::string {
    for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits))
      for (unsigned letter : dim.letters)
        if (rule.letters[letter].lacksFirstIndex && !axes.empty())
          return llvm::formatv("letter {0} is split over {1}, so the op needs the first index of "
                               "this rank's shard (par.first_index)",
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

/// Reports a result whose type contradicts the rule, with the reasons for each axis on which they
/// differ.
static LogicalResult refuseResult(Operation *op, unsigned index, const Layout &expected,
                                  const Layout &actual) {
  Type type = op->getResult(index).getType();
  InFlightDiagnostic error = op->emitOpError();
  error << "rule '" << cast<ShardInterface>(op).getShardRule() << "': result " << index << " is "
        << withLayout(type, expected) << ", not " << type;
  llvm::SetVector<StringAttr> axes;
  expected.axes(axes);
  for (StringAttr axis : axes)
    if (expected.kind(axis) != actual.kind(axis))
      attachReasons(error, llvm::formatv("result {0}", index).str(), axis,
                    traceReasons(op->getResult(index), expected.kind(axis), axis));
  return error;
}

static bool isPlaced(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getEncoding();
}

/// Returns the shapes in the types, without placement.
static SmallVector<ArrayRef<int64_t>> shapesOf(TypeRange types) {
  return llvm::map_to_vector(types, [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? tensor.getShape() : ArrayRef<int64_t>();
  });
}

LogicalResult partita::verifyShardRule(Operation *op) {
  std::string error;
  const ShardRule *rule = ruleOf(op, error);
  if (!rule)
    return op->emitOpError() << error;
  SmallVector<int64_t> sizes;
  if (llvm::none_of(op->getOperandTypes(), isPlaced) &&
      llvm::none_of(op->getResultTypes(), isPlaced)) {
    if (rule->letterSizes(shapesOf(op->getOperandTypes()), shapesOf(op->getResultTypes()), sizes,
                          error))
      return success();
    return op->emitOpError() << error;
  }
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
  if (!rule->letterSizes(operandShapes, resultShapes, sizes, error))
    return op->emitOpError() << error;

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
    layout.splits = result.splits; // for letters that only results have
  }
  RuleProblem problem;
  if (!placeResults(*rule, operands, carries, expected, problem)) {
    InFlightDiagnostic error = op->emitOpError();
    error << "rule '" << cast<ShardInterface>(op).getShardRule() << "': " << problem.text;
    attachReasons(error, op, problem);
    return error;
  }
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
      return refuseResult(op, i, layout, actual);
  }
  return success();
}

/// Returns a pattern's shape; each dimension is the product of its letters' sizes.
static SmallVector<int64_t> shapeOf(const RulePattern &pattern, ArrayRef<int64_t> letterSizes) {
  SmallVector<int64_t> shape;
  for (const RuleDim &dim : pattern.dims) {
    int64_t size = 1;
    for (unsigned letter : dim.letters)
      size *= letterSizes[letter];
    shape.push_back(size);
  }
  return shape;
}

/// Returns the type of a flat result, whose shard is as large as the operands'.
static RankedTensorType flatShardLike(ValueRange operands, const Layout &result, Type element) {
  if (!result.flat.empty())
    for (Value operand : operands)
      if (Layout::of(operand.getType()).flat == result.flat)
        return RankedTensorType::get(cast<RankedTensorType>(operand.getType()).getShape(), element,
                                     result.encoding(element.getContext()));
  return {};
}

LogicalResult partita::par::inferFromRule(StringRef text, ValueRange operands,
                                          ArrayRef<Type> elements, std::optional<Location> loc,
                                          SmallVectorImpl<Type> &inferred) {
  std::string error;
  SmallVector<int64_t> ranks = ranksOf(operands.getTypes()), resultRanks;
  // A result's rank is its pattern's: count its dimensions, with `*` as long as in the operands.
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
  for (auto [pattern, rank] : llvm::zip(patterns, ranks))
    if (auto [dims, star] = count(pattern); star)
      leading = rank - dims;
  resultText.split(resultPatterns, ',');
  for (StringRef pattern : resultPatterns) {
    auto [dims, star] = count(pattern);
    resultRanks.push_back(dims + (star ? leading : 0));
  }
  const ShardRule *rule = ShardRule::get(text, ranks, resultRanks, error);
  if (!rule)
    return emitOptionalError(loc, error);
  SmallVector<int64_t> sizes;
  if (llvm::none_of(operands.getTypes(), isPlaced)) {
    if (!rule->letterSizes(shapesOf(operands.getTypes()), {}, sizes, error))
      return emitOptionalError(loc, error);
    for (auto [pattern, element] : llvm::zip(rule->results, elements))
      inferred.push_back(RankedTensorType::get(shapeOf(pattern, sizes), element));
    return success();
  }
  SmallVector<Layout, 2> layouts;
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Value operand : operands)
    layouts.push_back(Layout::of(operand.getType()).valueOnly());
  for (const Layout &layout : layouts)
    shapes.push_back(layout.shape);
  if (!rule->letterSizes(shapes, {}, sizes, error))
    return emitOptionalError(loc, error);
  SmallVector<Layout, 2> results;
  for (const RulePattern &pattern : rule->results)
    results.emplace_back(shapeOf(pattern, sizes));
  RuleProblem problem;
  SmallVector<bool> carries(layouts.size(), false);
  if (!placeResults(*rule, layouts, carries, results, problem))
    return emitOptionalError(loc, "rule '", text, "': ", problem.text);
  // A rank's size of a letter is that of any operand's dimension with only this letter.
  SmallVector<int64_t> local(rule->letters.size(), -1);
  for (auto [pattern, operand] : llvm::zip(rule->operands, operands))
    for (auto [dim, size] :
         llvm::zip(pattern.dims, cast<RankedTensorType>(operand.getType()).getShape()))
      if (dim.letters.size() == 1)
        local[dim.letters.front()] = size;
  // An inner factor has its full size on every rank.
  for (auto [size, full] : llvm::zip(local, sizes))
    size = size < 0 ? full : size;
  for (auto [i, pattern] : llvm::enumerate(rule->results)) {
    Type element = elements[i];
    if (auto flat = flatShardLike(operands, results[i], element)) {
      inferred.push_back(flat);
      continue;
    }
    inferred.push_back(RankedTensorType::get(shapeOf(pattern, local), element,
                                             results[i].encoding(element.getContext())));
  }
  return success();
}
