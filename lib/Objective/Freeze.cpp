//===- Freeze.cpp - chooses which parameters are trained --------------------------------------===//

#include "lib/Objective/Freeze.h"
#include "dialects/Train/Tensors.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Support/NamePattern.h"

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

/// Drops patterns that match no parameter but a constant of the file, which is not trained anyway.
static SmallVector<std::string> withoutConstants(ModuleOp module, ArrayRef<std::string> patterns) {
  auto constants = module->getAttrOfType<ArrayAttr>(train::TrainDialect::kFrozenConstants);
  SmallVector<std::string> rest(patterns);
  llvm::erase_if(rest, [&](const std::string &pattern) {
    llvm::Expected<NamePattern> wanted = NamePattern::parse(pattern);
    if (!wanted || !constants) {
      llvm::consumeError(wanted.takeError());
      return false; // reported with the other patterns
    }
    auto isWanted = [&](StringRef name) { return wanted->match(name); };
    return llvm::any_of(constants.getAsRange<StringAttr>(),
                        [&](StringAttr name) { return isWanted(name.getValue()); }) &&
           llvm::none_of(module.getOps<train::ParameterOp>(), [&](train::ParameterOp parameter) {
             return train::anyNameOf(parameter, isWanted);
           });
  });
  return rest;
}

LogicalResult objective::chooseTrained(ModuleOp module, ArrayRef<std::string> freeze,
                                       ArrayRef<std::string> trainable) {
  auto frozen = analysis::parametersNamed(module, withoutConstants(module, freeze), "freeze");
  auto trained =
      failed(frozen) ? frozen : analysis::parametersNamed(module, trainable, "trainable");
  if (failed(trained))
    return failure();
  for (train::ParameterOp parameter : *frozen) {
    if (trained->contains(parameter))
      return module.emitError() << "parameter '" << parameter.getModelName()
                                << "' matches patterns of both trainable and freeze";
    parameter.setFrozen(true);
  }
  for (train::ParameterOp parameter : *trained)
    parameter.setFrozen(false);
  return success();
}

LogicalResult objective::checkTied(ModuleOp module, ArrayRef<std::string> pairs) {
  for (StringRef pair : pairs) {
    auto [first, second] = pair.rsplit('=');
    bool isTied = pair.empty();
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      auto has = [&](StringRef name) {
        return parameter.getModelName() == name ||
               llvm::any_of(train::tensorsOf(parameter),
                            [&](const train::StoredTensor &each) { return each.name == name; });
      };
      isTied |= has(first) && has(second);
    }
    if (!isTied)
      return module.emitError() << "tie: '" << first << "' and '" << second
                                << "' are not one parameter of this module; tensors are tied where "
                                   "the ONNX file is read: give the option to partita import";
  }
  return success();
}
