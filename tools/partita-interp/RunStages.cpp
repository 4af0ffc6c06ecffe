//===- RunStages.cpp - executes a program of pipeline stages ----------------------------------===//

#include "partita/Interp/RandomInputs.h"
#include "partita/Interp/Stages.h"
#include "partita/Interp/Verify.h"
#include "tools/partita-interp/Modes.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

using namespace mlir;
using namespace partita;
using namespace partita::interp;

using StageResults = std::vector<SmallVector<Tensor>>;

static FailureOr<func::FuncOp> functionOf(ModuleOp module, const Run &run) {
  if (auto function = module.lookupSymbol<func::FuncOp>(run.function))
    return function;
  return module.emitError() << "has no function '" << run.function << "'";
}

/// Of the last call. Arguments are new in each call, as runFunction does it; a stage shows less of what they mean
/// (the size of a vocabulary) than the program of all stages.
static FailureOr<StageResults> callOften(StageInterpreter &interpreter, ModuleOp full,
                                         const Run &run) {
  StageResults results;
  for (unsigned i = 0; i < run.times; ++i) {
    StageResults inputs;
    for (Interpreter &stage : interpreter.stages) {
      stage.options.stepNumber = i + 1;
      auto function = functionOf(full ? full : stage.module(), run);
      if (failed(function))
        return failure();
      auto own =
          full ? modelInputs(*function, run.seed + i) : randomInputs(*function, run.seed + i);
      if (failed(own))
        return failure();
      inputs.push_back(std::move(*own));
    }
    auto made = interpreter.call(run.function, inputs);
    if (failed(made))
      return failure();
    results = std::move(*made);
  }
  return results;
}

namespace {

/// What the stages have, against the program of all stages.
class Comparison {
public:
  Comparison(ModuleOp full, const Run &run) : interpreter(full, run.options), run(run) {}

  LogicalResult compare(StageInterpreter &stages, const StageResults &results) {
    auto expected = callFull();
    auto values = valuesOf(interpreter);
    if (failed(expected) || failed(values))
      return failure();
    for (auto [stage, own] : llvm::enumerate(stages.stages)) {
      auto has = valuesOf(own);
      if (failed(has))
        return failure();
      for (auto &[symbol, value] : *has) {
        auto expected = values->find(symbol);
        if (expected == values->end())
          return own.module().emitError()
                 << "has '" << symbol << "', which the program of all stages lacks";
        if (failed(check("'" + symbol + "'", stage, errorOf(value, expected->second))))
          return failure();
        found.insert(symbol);
      }
    }
    for (auto &[symbol, value] : *values)
      if (!found.count(symbol))
        return interpreter.module().emitError() << "no stage has '" << symbol << "'";
    if (failed(compareResults(*expected, results)))
      return failure();
    llvm::outs() << "equal: " << stages.stages.size() << " stages, " << compared
                 << " values; largest error " << llvm::format("%.1e", worst) << "\n";
    return success();
  }

private:
  FailureOr<SmallVector<Tensor>> callFull() {
    auto function = functionOf(interpreter.module(), run);
    if (failed(function) || failed(initialize(interpreter, run.values)))
      return failure();
    FailureOr<SmallVector<Tensor>> results = failure();
    for (unsigned i = 0; i < run.times; ++i) {
      interpreter.options.stepNumber = i + 1;
      auto inputs = modelInputs(*function, run.seed + i);
      if (failed(inputs) || failed(results = interpreter.call(run.function, *inputs)))
        return failure();
    }
    return results;
  }

  /// Of a parameter without a gradient (a key's bias) what is left of rounding is no value to agree on.
  static double errorOf(const Tensor &a, const Tensor &b) {
    double largest = 0;
    for (int64_t i = 0; i < b.size(); ++i)
      largest = std::max(largest, std::abs(b.number(i)));
    double error = relativeError(a, b);
    return std::isfinite(error) ? error * largest / std::max(largest, 1e-6) : error;
  }

  LogicalResult check(const Twine &what, size_t stage, double error) {
    ++compared;
    worst = std::max(worst, error);
    if (error <= run.tolerance)
      return success();
    return interpreter.module().emitError()
           << what << " of stage " << stage << " differs by "
           << llvm::formatv("{0:e1}", error).str() << ", more than "
           << llvm::formatv("{0:e1}", run.tolerance).str();
  }

  /// Each result of a stage is one of the program's, and each of these some stage's.
  LogicalResult compareResults(ArrayRef<Tensor> expected, const StageResults &results) {
    llvm::BitVector made(expected.size());
    for (auto [stage, own] : llvm::enumerate(results))
      for (auto [i, result] : llvm::enumerate(own)) {
        double least = INFINITY;
        for (auto [at, value] : llvm::enumerate(expected)) {
          double error = relativeError(result, value);
          least = std::min(least, error);
          if (error <= run.tolerance)
            made.set(at);
        }
        if (failed(check("result " + Twine(i), stage, least)))
          return failure();
      }
    return made.all() ? success()
                      : interpreter.module().emitError()
                            << "no stage has result " << made.find_first_unset();
  }

  Interpreter interpreter;
  const Run &run;
  std::set<std::string> found;
  size_t compared = 0;
  double worst = 0;
};

} // namespace

LogicalResult partita::interp::runStages(ModuleOp module, ModuleOp full, const Run &run) {
  auto interpreter = StageInterpreter::create(module, run.options, run.blockingSends);
  if (failed(interpreter))
    return failure();
  for (Interpreter &stage : interpreter->stages)
    if (failed(initialize(stage, run.values)))
      return failure();
  auto results = callOften(*interpreter, full, run);
  if (failed(results))
    return failure();
  if (full)
    return Comparison(full, run).compare(*interpreter, *results);
  for (auto [stage, own] : llvm::enumerate(*results))
    for (auto [i, result] : llvm::enumerate(own)) {
      llvm::outs() << "stage " << stage << ", result " << i << ": ";
      print(result, llvm::outs());
      llvm::outs() << "\n";
    }
  return success();
}
