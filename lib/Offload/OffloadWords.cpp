//===- OffloadWords.cpp - the keywords of --offload -------------------------------------------===//

#include "lib/Offload/OffloadWords.h"

using namespace mlir;
using namespace partita;

static constexpr llvm::StringLiteral kWords[] = {"optimizer", "parameters", "activations"};

FailureOr<bool> offload::names(ModuleOp module, ArrayRef<std::string> what, StringRef word) {
  for (const std::string &each : what)
    if (!llvm::is_contained(kWords, each))
      return module.emitError() << "the host keeps nothing called '" << each
                                << "'; known: " << llvm::join(ArrayRef(kWords), ", ");
  return llvm::is_contained(what, word);
}
