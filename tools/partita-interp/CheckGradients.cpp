//===- CheckGradients.cpp - the op table's gradients against numeric derivatives --------------===//
//
// L(x) = c . f(x) for random c and the function's first result (the others of layer_norm, attention
// and cross_entropy serve the backward pass and carry no cotangent). Differentiating the function
// op by op gives dL/dx; five-point differences in double precision give it again.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "mlir/IR/Verifier.h"
#include "partita/Interp/Random.h"
#include "partita/Interp/RandomInputs.h"
#include "partita/Interp/Verify.h"
#include "tools/partita-interp/Modes.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

SmallVector<Value> partita::interp::buildCotangents(OpBuilder &builder, Block &block,
                                                    ValueRange results, ValueRange cotangents,
                                                    ValueRange of) {
  llvm::DenseMap<Value, Value> known;
  auto flow = [&](Location loc, Value value, Value cotangent) {
    Value &sum = known[value];
    sum = sum ? tx::AddOp::create(builder, loc, ValueRange{sum, cotangent}).getResult() : cotangent;
  };
  for (auto [result, cotangent] : llvm::zip(results, cotangents))
    if (cotangent)
      flow(result.getLoc(), result, cotangent);
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    auto differentiable = dyn_cast<DifferentiableInterface>(op);
    SmallVector<Value> incoming;
    for (Value result : op->getResults())
      incoming.push_back(known.lookup(result));
    if (!differentiable ||
        llvm::none_of(incoming, [](Value value) { return static_cast<bool>(value); }))
      continue;
    for (auto [operand, cotangent] :
         llvm::zip(op->getOperands(), differentiable.buildGradient(builder, incoming)))
      if (cotangent)
        flow(op->getLoc(), operand, cotangent);
  }
  SmallVector<Value> found;
  for (Value value : of)
    found.push_back(known.lookup(value));
  return found;
}

/// A copy of the function that takes the cotangent of its first result as well and returns those of
/// its arguments; `arguments` lists which.
static FailureOr<func::FuncOp> buildGradientFunction(func::FuncOp function,
                                                     SmallVectorImpl<unsigned> &arguments) {
  func::FuncOp gradient = function.clone();
  gradient.setSymName((function.getSymName() + ".gradient").str());
  gradient.removeArgAttrsAttr();
  gradient.removeResAttrsAttr();
  function->getParentOfType<ModuleOp>().push_back(gradient);
  Block &block = gradient.getBody().front();
  Operation *terminator = block.getTerminator();
  SmallVector<Value> inputs(block.getArguments());
  Value result = terminator->getOperand(0);
  Value cotangent = block.addArgument(par::cotangentType(result.getType()), result.getLoc());
  OpBuilder builder(terminator);
  SmallVector<Value> returned;
  for (auto [i, value] :
       llvm::enumerate(buildCotangents(builder, block, result, cotangent, inputs)))
    if (value) {
      arguments.push_back(i);
      returned.push_back(value);
    }
  terminator->setOperands(returned);
  SmallVector<Type> argumentTypes(block.getArgumentTypes());
  gradient.setFunctionType(builder.getFunctionType(argumentTypes, ValueRange(returned).getTypes()));
  if (failed(verify(gradient)))
    return function.emitError() << "its gradient does not verify";
  return gradient;
}

/// c . f(x).
static FailureOr<double> weighted(Interpreter &interpreter, StringRef name, ArrayRef<Tensor> inputs,
                                  const Tensor &weights) {
  auto results = interpreter.call(name, inputs);
  if (failed(results))
    return failure();
  double sum = 0;
  for (int64_t i = 0; i < weights.size(); ++i)
    sum += weights.reals[i] * results->front().reals[i];
  return sum;
}

/// The derivative at x of `value`, by five points: (8 (L(x+h) - L(x-h)) - (L(x+2h) - L(x-2h))) / 12
/// h, whose error is of order h^4.
static FailureOr<double> derivative(double x, llvm::function_ref<FailureOr<double>(double)> value) {
  double h = 1e-3, sum = 0;
  for (auto [steps, factor] : {std::pair(1.0, 8.0), {-1.0, -8.0}, {2.0, -1.0}, {-2.0, 1.0}}) {
    auto there = value(x + steps * h);
    if (failed(there))
      return failure();
    sum += factor * *there;
  }
  return sum / (12 * h);
}

static FailureOr<Tensor> numericGradient(Interpreter &interpreter, StringRef name,
                                         SmallVector<Tensor> inputs, unsigned argument,
                                         const Tensor &weights) {
  Tensor gradient(inputs[argument].shape, true);
  for (int64_t i = 0; i < gradient.size(); ++i) {
    double &x = inputs[argument].reals[i], before = x;
    auto slope = derivative(before, [&](double there) {
      x = there;
      return weighted(interpreter, name, inputs, weights);
    });
    if (failed(slope))
      return failure();
    x = before;
    gradient.reals[i] = *slope;
  }
  return gradient;
}

static LogicalResult checkOne(ModuleOp module, func::FuncOp function, const Run &run) {
  SmallVector<unsigned> arguments;
  if (function.getNumResults() == 0 || !par::isDifferentiable(function.getResultTypes()[0])) {
    llvm::outs() << "gradient of " << function.getSymName() << ": none\n";
    return success();
  }
  auto gradient = buildGradientFunction(function, arguments);
  if (failed(gradient))
    return failure();
  llvm::outs() << "gradient of " << function.getSymName() << ":";
  for (unsigned i : arguments)
    llvm::outs() << " " << i;
  llvm::outs() << (arguments.empty() ? " none\n" : "\n");
  auto inputs = randomInputs(function, run.seed);
  if (failed(inputs))
    return failure();
  Tensor weights(cast<RankedTensorType>(gradient->getArgumentTypes().back()));
  for (int64_t i = 0; i < weights.size(); ++i)
    weights.reals[i] = standardNormal(randomKey(run.seed, "cotangent"), i);
  SmallVector<Tensor> both = *inputs;
  both.push_back(weights);
  Interpreter interpreter(module, run.options);
  auto built = interpreter.call(gradient->getSymName(), both);
  if (failed(built))
    return failure();
  for (auto [argument, value] : llvm::zip(arguments, *built)) {
    auto numeric = numericGradient(interpreter, function.getSymName(), *inputs, argument, weights);
    if (failed(numeric))
      return failure();
    double error = relativeError(value, *numeric);
    if (!(error <= run.tolerance))
      return function.emitError() << "the gradient of argument " << argument
                                  << " differs from the numeric one by " << error << ", more than "
                                  << run.tolerance;
  }
  return success();
}

/// The gradient of `name` that the function gave, at up to `samples` elements, against differences
/// of the loss; the largest deviation goes to `worst`.
static LogicalResult checkParameter(Interpreter &interpreter, const Run &run,
                                    ArrayRef<Tensor> inputs, StringRef name, const Tensor &gradient,
                                    double &worst) {
  auto value = interpreter.parameter(name);
  if (failed(value))
    return failure();
  int64_t count = std::min<int64_t>(run.samples, gradient.size());
  for (int64_t sample = 0; sample < count; ++sample) {
    uint64_t drawn = mix64(randomKey(run.seed, name) + sample);
    int64_t i = count == gradient.size() ? sample : static_cast<int64_t>(drawn % gradient.size());
    Tensor moved = *value;
    auto slope = derivative(value->reals[i], [&](double there) -> FailureOr<double> {
      moved.reals[i] = there;
      if (failed(interpreter.setParameter(name, moved)))
        return failure();
      auto results = interpreter.call(run.function, inputs);
      if (failed(results))
        return failure();
      return results->front().number(0);
    });
    if (failed(slope))
      return failure();
    worst = std::max(worst, std::abs(*slope - gradient.reals[i]));
  }
  return interpreter.setParameter(name, *value);
}

LogicalResult partita::interp::checkUpdates(ModuleOp module, const Run &run) {
  auto function = module.lookupSymbol<func::FuncOp>(run.function);
  if (!function || function.getNumResults() == 0)
    return module.emitError() << "has no function '" << run.function << "' that yields a loss";
  Interpreter interpreter(module, run.options);
  auto inputs = modelInputs(function, run.seed);
  if (failed(inputs) || failed(initialize(interpreter, run.values)))
    return failure();
  auto results = interpreter.call(run.function, *inputs);
  if (failed(results))
    return failure();
  if (results->front().size() != 1)
    return function.emitError() << "its first result is not a loss, it has "
                                << results->front().size() << " elements";
  std::map<std::string, Tensor> gradients = interpreter.gradients();
  if (gradients.empty())
    return function.emitError() << "updates no parameter";
  double largest = 0;
  for (auto &[name, gradient] : gradients)
    for (double number : gradient.reals)
      largest = std::max(largest, std::abs(number));
  for (auto &[name, gradient] : gradients) {
    double worst = 0;
    if (failed(checkParameter(interpreter, run, *inputs, name, gradient, worst)))
      return failure();
    if (!(worst <= std::max(run.tolerance, 1e-8) * largest))
      return function.emitError() << "the gradient of '" << name
                                  << "' differs from the numeric one by " << worst
                                  << ", the largest gradient is " << largest;
    llvm::outs() << "gradient of " << name << "\n";
  }
  return success();
}

LogicalResult partita::interp::checkGradients(ModuleOp module, const Run &run) {
  Run loose = run;
  loose.tolerance = std::max(run.tolerance, 1e-8); // what five-point differences reach
  bool ok = true;
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!function.getSymName().ends_with(".gradient") &&
        !function->hasAttr("interp.no_differences"))
      ok &= succeeded(checkOne(module, function, loose));
  return success(ok);
}
