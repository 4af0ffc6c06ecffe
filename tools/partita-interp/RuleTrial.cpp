//===- RuleTrial.cpp - an op placed by its rule, run, put together ----------------------------===//

#include "tools/partita-interp/RuleTrial.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "partita/Interp/Random.h"
#include "partita/Interp/RandomInputs.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

LogicalResult RuleTrial::prepare() {
  auto drawn = randomInputs(function, run.seed);
  if (failed(drawn))
    return failure();
  for (Value operand : op->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument)
      return op->emitError() << "its operands must be the function's arguments";
    inputs.push_back((*drawn)[argument.getArgNumber()]);
    full.operands.emplace_back(par::Layout::of(operand.getType()));
  }
  for (auto [i, type] : llvm::enumerate(op->getResultTypes())) {
    full.results.push_back(par::Layout::of(type));
    if (!par::isDifferentiable(type))
      continue;
    Tensor &cotangent = cotangents.emplace_back(cast<RankedTensorType>(type));
    for (int64_t e = 0; e < cotangent.size(); ++e)
      cotangent.reals[e] = standardNormal(randomKey(run.seed, "cotangent" + std::to_string(i)), e);
  }
  auto none = par::MeshAttr::get(op->getContext(), ArrayRef<StringAttr>(), ArrayRef<int64_t>());
  auto outcome = evaluate(full, none);
  if (failed(outcome))
    return failure();
  expected = std::move(*outcome);
  return success();
}

/// Is it zero but for rounding? Inputs are near 1. The rows of attention's dk add up to zero, whatever its inputs are.
static bool vanishes(const Tensor &tensor) {
  return llvm::all_of(tensor.reals, [](double x) { return std::abs(x) < 1e-14; });
}

LogicalResult RuleTrial::compare(ArrayRef<Tensor> found, const std::string &how) {
  for (auto [i, pair] : llvm::enumerate(llvm::zip(found, expected))) {
    double error = relativeError(std::get<0>(pair), std::get<1>(pair));
    if (error <= run.tolerance || (vanishes(std::get<0>(pair)) && vanishes(std::get<1>(pair))))
      continue;
    bool isResult = i < op->getNumResults();
    return op->emitError() << how << " "
                           << (isResult ? "result " : "the cotangent of differentiable operand ")
                           << (isResult ? i : i - op->getNumResults()) << " is wrong by " << error;
  }
  return success();
}

/// The types of one rank's shards, or failure after an error.
LogicalResult RuleTrial::localTypes(TypeRange types, ArrayRef<par::Layout> layouts,
                                    par::MeshAttr on, SmallVectorImpl<Type> &local) {
  for (auto [type, layout] : llvm::zip(types, layouts)) {
    auto shard = layout.localType(cast<RankedTensorType>(type).getElementType(), on,
                                  [&](const Twine &text) { op->emitError() << text; });
    if (failed(shard))
      return failure();
    local.push_back(*shard);
  }
  return success();
}

/// The full results of the op placed so, and the full cotangents of its operands.
FailureOr<SmallVector<Tensor>> RuleTrial::evaluate(const Case &placed, par::MeshAttr on) {
  SmallVector<Type> operandTypes, resultTypes;
  if (failed(localTypes(op->getOperandTypes(), placed.operands, on, operandTypes)) ||
      failed(localTypes(op->getResultTypes(), placed.results, on, resultTypes)))
    return failure();
  OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
  module.get()->setAttr(par::ParDialect::kMesh, on);
  build(*module, "op", operandTypes, resultTypes, false);
  // No gradient flows through a maximum per rank.
  bool flows = isOwnRule && llvm::all_of(placed.results, [](const par::Layout &layout) {
                 return layout.max.empty();
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
void RuleTrial::build(ModuleOp module, StringRef name, ArrayRef<Type> operandTypes,
                      ArrayRef<Type> resultTypes, bool gradient) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> argumentTypes(operandTypes);
  for (Type type : resultTypes)
    if (name == "gradient" && par::isDifferentiable(type))
      argumentTypes.push_back(par::cotangentType(type));
  auto built =
      func::FuncOp::create(builder, op->getLoc(), name, builder.getFunctionType(argumentTypes, {}));
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
    // What it is localized to may take the results' places.
    auto results = func::ReturnOp::create(builder, op->getLoc(), returned);
    cast<ShardInterface>(local).localize();
    returned.assign(results.operand_begin(), results.operand_end());
    results.erase();
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
SmallVector<Value> RuleTrial::cotangentsOf(OpBuilder &builder, Block &block, ValueRange results,
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

LogicalResult RuleTrial::checkForm(const RuleLetter &letter) {
  formParts = 2;
  auto none = par::MeshAttr::get(op->getContext(), ArrayRef<StringAttr>(), ArrayRef<int64_t>());
  auto found = evaluate(full, none);
  formParts = 1;
  if (failed(found))
    return op->emitError() << "the form that splits letter " << letter.name << " does not run";
  return compare(*found, "the form that splits letter " + letter.name + ":");
}

LogicalResult RuleTrial::check(Case placed, par::MeshAttr mesh) {
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

bool RuleTrial::isRight(Case placed, par::MeshAttr mesh) {
  ScopedDiagnosticHandler silent(op->getContext(), [](Diagnostic &) { return success(); });
  return succeeded(check(std::move(placed), mesh));
}
