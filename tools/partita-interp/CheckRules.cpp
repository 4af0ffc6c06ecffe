//===- CheckRules.cpp - the op table's rules, by brute force ----------------------------------===//
//
// For each op, on a mesh of one axis of two ranks: for each letter that may be split, and for each
// set of operands that may be partial sums together (in random shares), cut the operands as the
// rule says, run the localized op on each rank, put the results together as the rule says, and
// compare with the whole op. Then the same with the op's gradient: the cotangents' placements are
// the duals.
//
//===------------------------------------------------------------------------------------------===//

#include "Modes.h"
#include "dialects/Par/Placement.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "partita/Interp/Random.h"
#include "partita/Interp/RandomInputs.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

namespace {

/// One way to place the op's operands, and what that makes of its results.
struct Case {
  std::string name;
  SmallVector<par::Layout, 2> operands, results;
};

class RuleChecker {
public:
  RuleChecker(func::FuncOp function, Operation *op, ShardRule rule, bool isOwnRule, const Run &run)
      : function(function), op(op), rule(std::move(rule)), isOwnRule(isOwnRule), run(run),
        axis(StringAttr::get(op->getContext(), "x")),
        mesh(par::MeshAttr::get(op->getContext(), ArrayRef<StringAttr>{axis},
                                ArrayRef<int64_t>{2})) {}

  LogicalResult check() {
    if (failed(prepare()))
      return failure();
    llvm::outs() << op->getName() << " @" << function.getSymName() << ":";
    if (failed(checkLetters()) || failed(checkLinearity()))
      return failure();
    llvm::outs() << "\n";
    return success();
  }

private:
  /// Draws the operands and runs the whole op.
  LogicalResult prepare() {
    auto drawn = randomInputs(function, run.seed);
    if (failed(drawn))
      return failure();
    for (Value operand : op->getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (!argument)
        return op->emitError() << "its operands must be the function's arguments";
      inputs.push_back((*drawn)[argument.getArgNumber()]);
      whole.operands.emplace_back(par::Layout::of(operand.getType()));
    }
    for (auto [i, type] : llvm::enumerate(op->getResultTypes())) {
      whole.results.push_back(par::Layout::of(type));
      if (!par::isDifferentiable(type))
        continue;
      Tensor &cotangent = cotangents.emplace_back(cast<RankedTensorType>(type));
      for (int64_t e = 0; e < cotangent.size(); ++e)
        cotangent.reals[e] =
            standardNormal(randomKey(run.seed, "cotangent" + std::to_string(i)), e);
    }
    auto none = par::MeshAttr::get(op->getContext(), ArrayRef<StringAttr>(), ArrayRef<int64_t>());
    auto outcome = evaluate(whole, none);
    if (failed(outcome))
      return failure();
    expected = std::move(*outcome);
    return success();
  }

  LogicalResult checkLetters() {
    SmallVector<int64_t> sizes;
    std::string error;
    if (!par::letterSizes(rule, op, sizes, error))
      return op->emitError() << error;
    llvm::outs() << " split";
    for (auto [letter, description] : llvm::enumerate(rule.letters)) {
      if (description.never)
        continue;
      if (description.byForm) {
        llvm::outs() << " " << description.name << "!";
        if (failed(checkForm(description)))
          return failure();
        continue;
      }
      if (sizes[letter] % 2 != 0)
        return op->emitError() << "letter " << description.name << " has size " << sizes[letter]
                               << ", which two ranks cannot share: choose an even one";
      llvm::outs() << " " << description.name;
      Case split = whole;
      split.name = "with letter " + description.name + " split";
      auto place = [&, letter = letter](const RulePattern &pattern, par::Layout &layout,
                                        bool isOperand) {
        if (int dim = pattern.dimOf(letter); dim >= 0)
          layout.shard(
              axis, dim,
              par::blocksOfDim(pattern.dims[dim], {static_cast<unsigned>(letter), 1}, sizes));
        else if (isOperand)
          layout.set(axis, par::Kind::Replicated);
      };
      for (auto [pattern, layout] : llvm::zip(rule.operands, split.operands))
        place(pattern, layout, true);
      for (auto [pattern, layout] : llvm::zip(rule.results, split.results))
        place(pattern, layout, false);
      if (failed(checkCase(split)))
        return failure();
    }
    return success();
  }

  /// The ops that take the op's place when a letter is split, unsplit: the same results and
  /// gradients.
  LogicalResult checkForm(const RuleLetter &letter) {
    formParts = 2;
    auto none = par::MeshAttr::get(op->getContext(), ArrayRef<StringAttr>(), ArrayRef<int64_t>());
    auto found = evaluate(whole, none);
    formParts = 1;
    if (failed(found))
      return op->emitError() << "the form that splits letter " << letter.name << " does not run";
    return compare(*found, "the form that splits letter " + letter.name + ":");
  }

  LogicalResult checkLinearity() {
    SmallVector<SmallVector<unsigned>> sets{{}}; // none: all operands replicated
    SmallVector<unsigned> together;
    for (auto [i, pattern] : llvm::enumerate(rule.operands)) {
      if (pattern.linearity == Linearity::Separately)
        sets.push_back({static_cast<unsigned>(i)});
      if (pattern.linearity == Linearity::Together)
        together.push_back(i);
    }
    if (!together.empty())
      sets.push_back(together);
    llvm::outs() << "; partial";
    for (ArrayRef<unsigned> set : sets) {
      Case partial = whole;
      partial.name = set.empty() ? "with all operands replicated" : "with a partial sum";
      for (auto [i, layout] : llvm::enumerate(partial.operands))
        layout.set(axis, llvm::is_contained(set, i) ? par::Kind::Partial : par::Kind::Replicated);
      if (!set.empty()) {
        std::string text;
        llvm::raw_string_ostream os(text);
        llvm::interleave(set, os, "+");
        llvm::outs() << " " << text;
        partial.name += " in operand " + text;
      }
      if (failed(checkCase(partial)))
        return failure();
    }
    return success();
  }

  LogicalResult checkCase(Case &placed) {
    SmallVector<bool> carries;
    for (Value operand : op->getOperands())
      carries.push_back(par::isDifferentiable(operand.getType()));
    par::RuleProblem problem;
    if (!par::placeResults(rule, placed.operands, carries, placed.results, problem))
      return op->emitError() << placed.name << ": " << problem.text;
    auto found = evaluate(placed, mesh);
    if (failed(found))
      return op->emitError() << placed.name << " it does not run";
    return compare(*found, placed.name);
  }

  LogicalResult compare(ArrayRef<Tensor> found, const std::string &how) {
    for (auto [i, pair] : llvm::enumerate(llvm::zip(found, expected))) {
      double error = relativeError(std::get<0>(pair), std::get<1>(pair));
      if (error <= run.tolerance)
        continue;
      bool isResult = i < op->getNumResults();
      return op->emitError() << how << " "
                             << (isResult ? "result " : "the cotangent of differentiable operand ")
                             << (isResult ? i : i - op->getNumResults()) << " is wrong by "
                             << error;
    }
    return success();
  }

  /// The types of one rank's pieces, or failure after an error.
  LogicalResult localTypes(TypeRange types, ArrayRef<par::Layout> layouts, par::MeshAttr on,
                           SmallVectorImpl<Type> &local) {
    for (auto [type, layout] : llvm::zip(types, layouts)) {
      auto piece = layout.localType(cast<RankedTensorType>(type).getElementType(), on,
                                    [&](const Twine &text) { op->emitError() << text; });
      if (failed(piece))
        return failure();
      local.push_back(*piece);
    }
    return success();
  }

  /// The whole results of the op placed so, and the whole cotangents of its operands.
  FailureOr<SmallVector<Tensor>> evaluate(const Case &placed, par::MeshAttr on) {
    SmallVector<Type> operandTypes, resultTypes;
    if (failed(localTypes(op->getOperandTypes(), placed.operands, on, operandTypes)) ||
        failed(localTypes(op->getResultTypes(), placed.results, on, resultTypes)))
      return failure();
    OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
    module.get()->setAttr(par::ParDialect::kMesh, on);
    build(*module, "op", operandTypes, resultTypes, false);
    // No gradient flows through a maximum per rank.
    bool flows = isOwnRule && llvm::all_of(placed.results, [](const par::Layout &layout) {
                   return layout.greatest.empty();
                 });
    build(*module, "gradient", operandTypes, resultTypes, flows);
    if (isOwnRule && failed(verify(*module)))
      return failure();
    SmallVector<Tensor> both = inputs;
    both.append(cotangents);
    Interpreter interpreter(*module, run.options);
    auto results = interpreter.call("op", inputs);
    auto gradients = flows ? interpreter.call("gradient", both) : FailureOr(SmallVector<Tensor>());
    if (failed(results) || failed(gradients))
      return failure();
    results->append(*gradients);
    return *results;
  }

  /// @op(operands) -> results, or @gradient(operands, cotangents of results) -> cotangents of
  /// operands.
  void build(ModuleOp module, StringRef name, ArrayRef<Type> operandTypes,
             ArrayRef<Type> resultTypes, bool gradient) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    SmallVector<Type> argumentTypes(operandTypes);
    for (Type type : resultTypes)
      if (name == "gradient" && par::isDifferentiable(type))
        argumentTypes.push_back(par::cotangentType(type));
    auto built = func::FuncOp::create(builder, op->getLoc(), name,
                                      builder.getFunctionType(argumentTypes, {}));
    Block &block = *built.addEntryBlock();
    builder.setInsertionPointToStart(&block);
    IRMapping mapping;
    ValueRange operands = ValueRange(block.getArguments()).take_front(operandTypes.size());
    for (auto [old, argument] : llvm::zip(op->getOperands(), operands))
      mapping.map(old, argument);
    // An operand used twice is two arguments here.
    Operation *local = builder.clone(*op, mapping);
    local->setOperands(operands);
    for (auto [result, type] : llvm::zip(local->getResults(), resultTypes))
      result.setType(type);
    SmallVector<Value> returned(local->getResults());
    if (formParts > 1) {
      returned = cast<ShardInterface>(local).splitForm(builder, formParts);
      local->erase();
    } else {
      cast<ShardInterface>(local).localize();
    }
    if (gradient)
      returned = cotangentsOf(builder, block, returned, operands);
    else if (name == "gradient")
      returned.clear();
    if (name == "gradient")
      built->setAttr(par::ParDialect::kNoCotangents, builder.getUnitAttr());
    func::ReturnOp::create(builder, op->getLoc(), returned);
    built.setFunctionType(builder.getFunctionType(argumentTypes, ValueRange(returned).getTypes()));
  }

  /// The first result's cotangent alone flows into a form: an op's others serve its backward pass.
  SmallVector<Value> cotangentsOf(OpBuilder &builder, Block &block, ValueRange results,
                                  ValueRange operands) {
    auto next = block.args_begin() + operands.size();
    SmallVector<Value> incoming, found;
    for (Value result : results) {
      Value cotangent = par::isDifferentiable(result.getType()) ? Value(*next++) : Value();
      incoming.push_back(formParts > 1 && result != results.front() ? Value() : cotangent);
    }
    for (Value value : buildCotangents(builder, block, results, incoming, operands))
      if (value)
        found.push_back(value);
    return found;
  }

  func::FuncOp function;
  Operation *op;
  ShardRule rule;
  bool isOwnRule;
  const Run &run;
  StringAttr axis;
  par::MeshAttr mesh;
  int64_t formParts = 1; // more: build the op's split form
  Case whole;
  SmallVector<Tensor> inputs, cotangents, expected;
};

} // namespace

/// The rule given for the op on the command line, else its own.
static std::optional<ShardRule> ruleFor(Operation *op, ArrayRef<std::string> rules, bool &isOwn,
                                        std::string &error) {
  SmallVector<int64_t> operandRanks, resultRanks;
  for (Type type : op->getOperandTypes())
    operandRanks.push_back(cast<RankedTensorType>(type).getRank());
  for (Type type : op->getResultTypes())
    resultRanks.push_back(cast<RankedTensorType>(type).getRank());
  isOwn = false;
  for (StringRef text : rules)
    if (auto [name, rule] = text.split('='); name == op->getName().getStringRef())
      return ShardRule::parse(rule, operandRanks, resultRanks, error);
  isOwn = true;
  return par::ruleOf(op, error);
}

LogicalResult partita::interp::checkRules(ModuleOp module, const Run &run,
                                          ArrayRef<std::string> rules, StringRef dialect) {
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
    std::optional<ShardRule> rule = ruleFor(op, rules, isOwn, error);
    if (!rule)
      op->emitError() << error;
    ok &= rule && succeeded(RuleChecker(function, op, std::move(*rule), isOwn, run).check());
  }
  for (RegisteredOperationName name : module.getContext()->getRegisteredOperations())
    if (!dialect.empty() && name.getDialectNamespace() == dialect &&
        name.hasInterface<ShardInterface>() && !sampled.contains(name.getStringRef())) {
      ok = false;
      module.emitError() << "no function tries the rule of '" << name.getStringRef() << "'";
    }
  return success(ok);
}
