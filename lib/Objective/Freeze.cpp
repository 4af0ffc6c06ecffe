//===- Freeze.cpp - parameters that are not trained -------------------------------------------===//

#include "lib/Objective/Freeze.h"
#include "dialects/Train/Train.h"
#include "partita/Support/NearestNames.h"
#include "llvm/Support/GlobPattern.h"

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
  for (const std::string &pattern : patterns) {
    if (pattern.empty())
      continue;
    auto glob = llvm::GlobPattern::create(pattern);
    if (!glob)
      return module.emitError() << "freeze: '" << pattern
                                << "' is no glob pattern: " << llvm::toString(glob.takeError());
    bool any = false;
    SmallVector<StringRef> names;
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      names.push_back(parameter.getModelName());
      if (!glob->match(parameter.getModelName()))
        continue;
      parameter.setFrozen(true);
      any = true;
    }
    if (any)
      continue;
    return module.emitError() << "freeze: no parameter matches '" << pattern << "'"
                              << nearestNames(pattern, names);
  }
  return success();
}
