//===- Parameters.cpp - parameters by name, their shards and updates --------------------------===//

#include "partita/Analysis/Parameters.h"
#include "dialects/Train/Tensors.h"
#include "partita/Support/NamePattern.h"

using namespace mlir;
using namespace partita;

FailureOr<llvm::SetVector<train::ParameterOp>>
analysis::parametersNamed(ModuleOp module, ArrayRef<std::string> patterns, StringRef option) {
  llvm::SetVector<train::ParameterOp> result;
  for (const std::string &pattern : patterns) {
    if (pattern.empty())
      continue;
    llvm::Expected<NamePattern> wanted = NamePattern::parse(pattern);
    if (!wanted)
      return module.emitError() << option << ": " << llvm::toString(wanted.takeError());
    bool any = false;
    SmallVector<StringRef> names;
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      names.push_back(parameter.getModelName());
      if (train::anyNameOf(parameter, [&](StringRef name) { return wanted->match(name); }))
        any = true, result.insert(parameter);
    }
    if (!any)
      return module.emitError() << option << ": " << wanted->unmatched("parameter", names);
  }
  return result;
}

LogicalResult analysis::checkNamed(ModuleOp module, ArrayRef<std::string> patterns,
                                   StringRef option,
                                   llvm::function_ref<bool(train::ParameterOp)> matters,
                                   StringRef otherwise) {
  for (const std::string &pattern : patterns) {
    auto named = parametersNamed(module, pattern, option);
    if (failed(named))
      return failure();
    if (named->empty() || llvm::any_of(*named, matters))
      continue;
    train::ParameterOp first = named->front();
    return module.emitError() << option << ": '" << pattern
                              << "' has no effect: " << first.getModelName() << " "
                              << (named->size() == 1 ? "" : "and all others that it names ")
                              << otherwise << "; leave it out";
  }
  return success();
}

FailureOr<analysis::LocalTypes> analysis::localTypes(ModuleOp module) {
  LocalTypes types;
  auto note = [&](Operation *op, FlatSymbolRefAttr symbol, Type type) -> LogicalResult {
    auto [found, isNew] = types.try_emplace(symbol.getValue(), cast<RankedTensorType>(type));
    if (isNew || found->second == type)
      return success();
    return op->emitOpError() << "of " << symbol << " has type " << type << ", elsewhere it is "
                             << found->second;
  };
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    if (auto read = dyn_cast<train::ReadOp>(op))
      return note(op, read.getSymbolAttr(), read.getType());
    if (auto initial = dyn_cast<train::InitialValueOp>(op))
      return note(op, initial.getSymbolAttr(), initial.getType());
    if (auto write = dyn_cast<train::WriteOp>(op))
      return note(op, write.getSymbolAttr(), write.getValue().getType());
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return types;
}

RankedTensorType analysis::localType(const LocalTypes &types, Operation *symbol) {
  if (RankedTensorType local = types.lookup(SymbolTable::getSymbolName(symbol)))
    return local;
  auto parameter = dyn_cast<train::ParameterOp>(symbol);
  return cast<RankedTensorType>(parameter ? parameter.getType()
                                          : cast<train::StateOp>(symbol).getType());
}

std::map<std::string, double> analysis::sharedHyperparameters(ModuleOp module) {
  std::map<std::string, double> shared;
  auto share = [&](StringRef name, double value) {
    if (name != "decay" || value != 0)
      shared.try_emplace(name.str(), value);
  };
  module.walk([&](Operation *op) {
    if (auto update = dyn_cast<train::OptimizerInterface>(op))
      for (train::Hyperparameter each : update.getHyperparameters())
        share(each.name, update.getHyper(each.name));
    if (auto clip = dyn_cast<train::ClipOp>(op))
      share("max_norm", clip.getMaxNorm().convertToDouble());
  });
  return shared;
}
