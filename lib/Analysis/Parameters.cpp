//===- Parameters.cpp - parameters by the names that a user gives -----------------------------===//

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
