//===- Parameters.cpp - parameters by the names that a user gives -----------------------------===//

#include "partita/Analysis/Parameters.h"
#include "dialects/Train/Tensors.h"
#include "partita/Support/NearestNames.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace partita;

FailureOr<llvm::SetVector<train::ParameterOp>>
analysis::parametersNamed(ModuleOp module, ArrayRef<std::string> patterns, StringRef option) {
  llvm::SetVector<train::ParameterOp> result;
  for (const std::string &pattern : patterns) {
    if (pattern.empty())
      continue;
    auto glob = llvm::GlobPattern::create(pattern);
    if (!glob)
      return module.emitError() << option << ": '" << pattern
                                << "' is no glob pattern: " << llvm::toString(glob.takeError());
    bool any = false;
    SmallVector<StringRef> names;
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      names.push_back(parameter.getModelName());
      if (glob->match(parameter.getModelName()) ||
          llvm::any_of(train::tensorsOf(parameter),
                       [&](const train::StoredTensor &each) { return glob->match(each.name); }))
        any = true, result.insert(parameter);
    }
    if (!any)
      return module.emitError() << option << ": no parameter matches '" << pattern << "'"
                                << nearestNames(pattern, names);
  }
  return result;
}
