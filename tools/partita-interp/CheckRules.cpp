//===- CheckRules.cpp - the op table's rules, by brute force ----------------------------------===//
//
// For each op, on a mesh of one axis of two ranks: for each letter that may be split, and for each
// set of operands that may be partial sums together (in random shares), cut the operands as the
// rule says, run the localized op on each rank, put the results together as the rule says, and
// compare with the full op. Then the same with the op's gradient: the cotangents' placements are
// the duals.
//
// On two axes of two and three ranks, in either order: every pair of these, one per axis, also both
// axes on one letter, in either order. Letters that the second axis splits are made three times as
// large first.
//
// What the rule forbids but would come out right is listed: a letter that could be split, an
// operand that the op is linear in.
//
//===------------------------------------------------------------------------------------------===//

#include "mlir/IR/Verifier.h"
#include "tools/partita-interp/RuleTrial.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

namespace {

/// What one axis does: split a letter, or have some operands in shares (none: all replicated).
struct Choice {
  int letter = -1;
  SmallVector<unsigned> partial;
  std::string name;
};

/// Adds what an axis does to a case.
void place(Case &placed, const ShardRule &rule, ArrayRef<int64_t> sizes, const Choice &choice,
           StringAttr axis) {
  placed.name += (placed.name.empty() ? "with " : " and ") + choice.name;
  auto visit = [&](const RulePattern &pattern, par::Layout &layout, int operand) {
    auto letter = static_cast<unsigned>(choice.letter);
    int dim = choice.letter < 0 ? -1 : pattern.dimOf(letter);
    if (dim >= 0)
      layout.shard(axis, dim, par::blocksOfDim(pattern.dims[dim], {letter, 1}, sizes));
    else if (operand >= 0)
      layout.set(axis, llvm::is_contained(choice.partial, operand) ? par::Kind::Partial
                                                                   : par::Kind::Replicated);
  };
  for (auto [i, pattern] : llvm::enumerate(rule.operands))
    visit(pattern, placed.operands[i], static_cast<int>(i));
  for (auto [pattern, layout] : llvm::zip(rule.results, placed.results))
    visit(pattern, layout, -1);
}

SmallVector<Choice> partialChoices(const ShardRule &rule) {
  SmallVector<Choice> choices{{-1, {}, "all operands replicated"}};
  SmallVector<unsigned> together;
  auto add = [&](ArrayRef<unsigned> set) {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleave(set, os, "+");
    choices.push_back({-1, SmallVector<unsigned>(set), "a partial sum in operand " + text});
  };
  for (auto [i, pattern] : llvm::enumerate(rule.operands)) {
    if (pattern.linearity == Linearity::Separately)
      add({static_cast<unsigned>(i)});
    if (pattern.linearity == Linearity::Together)
      together.push_back(i);
  }
  if (!together.empty())
    add(together);
  return choices;
}

class RuleChecker {
public:
  RuleChecker(func::FuncOp function, Operation *op, const ShardRule &rule, bool isOwnRule,
              const Run &run)
      : function(function), op(op), rule(rule), isOwnRule(isOwnRule), run(run),
        trial(function, op, rule, isOwnRule, run), x(StringAttr::get(op->getContext(), "x")),
        y(StringAttr::get(op->getContext(), "y")) {}

  LogicalResult check(bool twoAxes, bool missing) {
    std::string error;
    if (failed(trial.prepare()))
      return failure();
    if (!par::letterSizes(rule, op, sizes, error))
      return op->emitError() << error;
    llvm::outs() << op->getName() << " @" << function.getSymName() << ":";
    if (failed(checkOneAxis()) || (twoAxes && failed(checkTwoAxes())))
      return failure();
    if (missing)
      listMissing();
    llvm::outs() << "\n";
    return success();
  }

private:
  par::MeshAttr mesh(ArrayRef<StringAttr> axes, ArrayRef<int64_t> ranks) {
    return par::MeshAttr::get(op->getContext(), axes, ranks);
  }

  LogicalResult checkOneAxis() {
    llvm::outs() << " split";
    for (auto [letter, description] : llvm::enumerate(rule.letters)) {
      if (description.never && !description.byForm)
        continue;
      llvm::outs() << " " << description.name << (description.byForm ? "!" : "");
      if (description.byForm) {
        if (failed(trial.checkForm(description)))
          return failure();
        continue;
      }
      if (sizes[letter] % 2 != 0)
        return op->emitError() << "letter " << description.name << " has size " << sizes[letter]
                               << ", which two ranks cannot share: choose an even one";
      letters.push_back({static_cast<int>(letter), {}, "letter " + description.name + " split"});
      if (failed(checkOn(letters.back())))
        return failure();
    }
    llvm::outs() << "; partial";
    for (const Choice &choice : partialChoices(rule)) {
      if (!choice.partial.empty())
        llvm::outs() << " " << StringRef(choice.name).rsplit(' ').second;
      if (failed(checkOn(choice)))
        return failure();
    }
    return success();
  }

  LogicalResult checkOn(const Choice &choice) {
    Case placed = trial.getFull();
    place(placed, rule, sizes, choice, x);
    return trial.check(placed, mesh({x}, {2}));
  }

  /// All pairs. The second axis has three ranks: what it splits is made larger.
  LogicalResult checkTwoAxes() {
    int64_t cases = 0;
    for (const Choice &second : letters) {
      auto larger = withLetterTripled(second.letter);
      if (larger && failed(checkPairs(larger.get(), second, cases)))
        return failure();
    }
    for (const Choice &second : partialChoices(rule))
      if (failed(checkPairs(nullptr, second, cases)))
        return failure();
    llvm::outs() << "; " << cases << " on two axes";
    return success();
  }

  /// Every choice over the first axis with one over the second; on a function of its own where that
  /// has larger operands.
  LogicalResult checkPairs(ModuleOp larger, const Choice &second, int64_t &cases) {
    func::FuncOp at = larger ? *larger.getOps<func::FuncOp>().begin() : function;
    Operation *placedOp = &at.getBody().front().front();
    std::string error;
    SmallVector<int64_t> placedSizes;
    RuleTrial pairs(at, placedOp, rule, isOwnRule, run);
    if (!par::letterSizes(rule, placedOp, placedSizes, error) || failed(pairs.prepare()))
      return failure();
    SmallVector<Choice> firsts = partialChoices(rule);
    firsts.append(letters);
    for (const Choice &first : firsts) {
      bool one = first.letter >= 0 && first.letter == second.letter;
      for (bool swapped : {false, true}) {
        Case placed = pairs.getFull();
        // On one letter the axis that is placed first is the outer one.
        place(placed, rule, placedSizes, swapped && one ? second : first, swapped && one ? y : x);
        place(placed, rule, placedSizes, swapped && one ? first : second, swapped && one ? x : y);
        ++cases;
        if (failed(pairs.check(placed, swapped ? mesh({y, x}, {3, 2}) : mesh({x, y}, {2, 3}))))
          return failure();
        if (one && failed(pairs.check(placed, mesh({x, y}, {2, 3}))))
          return failure();
      }
    }
    return success();
  }

  /// The op's function with one letter of the rule three times as large; nothing where attributes
  /// speak of its size.
  OwningOpRef<ModuleOp> withLetterTripled(unsigned letter) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
    auto copy = cast<func::FuncOp>(function->clone());
    module->push_back(copy);
    Operation *larger = &copy.getBody().front().front();
    auto resize = [&](const RulePattern &pattern, Value value) {
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> shape(type.getShape());
      if (int dim = pattern.dimOf(letter); dim >= 0)
        shape[dim] *= 3;
      value.setType(RankedTensorType::get(shape, type.getElementType()));
    };
    // An operand used twice is resized once.
    llvm::DenseSet<Value> done;
    for (auto [pattern, value] : llvm::zip(rule.operands, larger->getOperands()))
      if (done.insert(value).second)
        resize(pattern, value);
    for (auto [pattern, value] : llvm::zip(rule.results, larger->getResults()))
      resize(pattern, value);
    copy.setFunctionType(FunctionType::get(
        op->getContext(), copy.getBody().front().getArgumentTypes(), larger->getResultTypes()));
    ScopedDiagnosticHandler silent(op->getContext(), [](Diagnostic &) { return success(); });
    std::string error;
    auto text = [](Operation *of) { return cast<ShardInterface>(of).getShardRule(); };
    if (failed(verify(*module)) || text(larger) != text(op))
      return {};
    return module;
  }

  /// A letter or operand that the rule forbids, tried as if it did not.
  void listMissing() {
    auto right = [&](const ShardRule &tried, const Choice &choice) {
      RuleTrial other(function, op, tried, /*isOwnRule=*/false, run);
      if (failed(other.prepare()))
        return false;
      Case placed = other.getFull();
      place(placed, tried, sizes, choice, x);
      return other.isRight(placed, mesh({x}, {2}));
    };
    for (auto [letter, description] : llvm::enumerate(rule.letters)) {
      // Where types do not follow from operands, attributes speak of full sizes: not to be run.
      if (!description.never || sizes[letter] % 2 != 0 || !isa<InferTypeOpInterface>(op))
        continue;
      ShardRule tried = rule;
      tried.letters[letter].never = false;
      tried.letters[letter].summed = true;
      if (right(tried, {static_cast<int>(letter), {}, ""}))
        llvm::outs() << "; could split " << description.name;
    }
    for (auto [i, pattern] : llvm::enumerate(rule.operands)) {
      if (pattern.linearity != Linearity::None ||
          !par::isDifferentiable(op->getOperand(i).getType()))
        continue;
      ShardRule tried = rule;
      tried.operands[i].linearity = Linearity::Separately;
      if (right(tried, {-1, {static_cast<unsigned>(i)}, ""}))
        llvm::outs() << "; linear in " << i;
    }
  }

  func::FuncOp function;
  Operation *op;
  const ShardRule &rule;
  bool isOwnRule;
  const Run &run;
  RuleTrial trial;
  StringAttr x, y;
  SmallVector<int64_t> sizes;  // of the letters
  SmallVector<Choice> letters; // that may be split
};

} // namespace

/// The rule given for the op on the command line, else its own.
static const ShardRule *ruleFor(Operation *op, ArrayRef<std::string> rules, bool &isOwn,
                                std::string &error) {
  SmallVector<int64_t> operandRanks, resultRanks;
  for (Type type : op->getOperandTypes())
    operandRanks.push_back(cast<RankedTensorType>(type).getRank());
  for (Type type : op->getResultTypes())
    resultRanks.push_back(cast<RankedTensorType>(type).getRank());
  isOwn = false;
  for (StringRef text : rules)
    if (auto [name, rule] = text.split('='); name == op->getName().getStringRef())
      return ShardRule::get(rule, operandRanks, resultRanks, error);
  isOwn = true;
  return par::ruleOf(op, error);
}

LogicalResult partita::interp::checkRules(ModuleOp module, const Run &run,
                                          ArrayRef<std::string> rules, StringRef dialect,
                                          bool twoAxes, bool missing) {
  bool ok = true;
  llvm::StringSet<> sampled;
  for (auto function : module.getOps<func::FuncOp>()) {
    Block &block = function.getBody().front();
    Operation *op = &block.front();
    if (block.getOperations().size() != 2 || !isa<ShardInterface>(op)) {
      ok = false;
      function.emitError() << "must hold one op with a rule, and return";
      continue;
    }
    sampled.insert(op->getName().getStringRef());
    std::string error;
    bool isOwn = true;
    const ShardRule *rule = ruleFor(op, rules, isOwn, error);
    if (!rule)
      op->emitError() << error;
    ok &= rule &&
          succeeded(RuleChecker(function, op, *rule, isOwn, run).check(twoAxes && isOwn, missing));
  }
  for (RegisteredOperationName name : module.getContext()->getRegisteredOperations())
    if (!dialect.empty() && name.getDialectNamespace() == dialect &&
        name.hasInterface<ShardInterface>() && !sampled.contains(name.getStringRef())) {
      ok = false;
      module.emitError() << "no function tries the rule of '" << name.getStringRef() << "'";
    }
  return success(ok);
}
