//===- Freeze.cpp - parameters that are not trained -------------------------------------------===//

#include "lib/Objective/Freeze.h"
#include "partita/Analysis/Parameters.h"

using namespace mlir;
using namespace partita;

LogicalResult objective::checkSomethingTrains(ModuleOp module) {
  auto parameters = module.getOps<train::ParameterOp>();
  bool all = llvm::all_of(parameters, [](train::ParameterOp each) { return each.getFrozen(); });
  if (!all || parameters.empty())
    return success();
  return module.emitError() << "freeze: all parameters are frozen, so nothing would be trained; "
                               "--objective none makes a program for inference";
}

LogicalResult objective::freezeParameters(ModuleOp module, ArrayRef<std::string> patterns) {
  auto named = analysis::parametersNamed(module, patterns, "freeze");
  if (failed(named))
    return failure();
  for (train::ParameterOp parameter : *named)
    parameter.setFrozen(true);
  return success();
}
