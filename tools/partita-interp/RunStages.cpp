//===- RunStages.cpp - executes a program of pipeline stages ----------------------------------===//

#include "Modes.h"
#include "partita/Interp/RandomInputs.h"
#include "partita/Interp/Stages.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

LogicalResult partita::interp::runStages(ModuleOp module, const Run &run) {
  auto interpreter = StageInterpreter::create(module, run.options, run.blockingSends);
  if (failed(interpreter))
    return failure();
  std::vector<SmallVector<Tensor>> inputs;
  for (Interpreter &stage : interpreter->stages) {
    auto function = stage.module().lookupSymbol<func::FuncOp>(run.function);
    if (!function)
      return stage.module().emitError() << "has no function '" << run.function << "'";
    auto own = randomInputs(function, run.seed);
    if (failed(own) || failed(initialize(stage, run.values)))
      return failure();
    inputs.push_back(std::move(*own));
  }
  std::vector<SmallVector<Tensor>> results;
  for (unsigned i = 0; i < run.times; ++i) {
    for (Interpreter &stage : interpreter->stages)
      stage.options.stepNumber = i + 1;
    auto made = interpreter->call(run.function, inputs);
    if (failed(made))
      return failure();
    results = std::move(*made);
  }
  for (auto [stage, own] : llvm::enumerate(results))
    for (auto [i, result] : llvm::enumerate(own)) {
      llvm::outs() << "stage " << stage << ", result " << i << ": ";
      print(result, llvm::outs());
      llvm::outs() << "\n";
    }
  return success();
}
