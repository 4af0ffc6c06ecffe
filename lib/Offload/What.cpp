//===- What.cpp - the words of --offload ------------------------------------------------------===//

#include "lib/Offload/What.h"
#include "dialects/Train/Train.h"

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

SmallVector<Operation *> offload::statesOf(Operation *update) {
  SmallVector<Operation *> states;
  for (Value operand : update->getOperands())
    if (auto read = operand.getDefiningOp<train::ReadOp>())
      if (auto state =
              SymbolTable::lookupNearestSymbolFrom<train::StateOp>(update, read.getSymbolAttr()))
        states.push_back(state);
  return states;
}
