//===- TargetOption.h - what a program runs on --------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_TARGETOPTION_H
#define PARTITA_TOOLS_TARGETOPTION_H

#include "mlir/IR/BuiltinOps.h"
#include "tools/partita/Options.h"

namespace partita::tool {

/// Declares --target; `target` becomes its value, and stays empty without it.
void declareTarget(OptionSet &options, std::string &target);

/// Sets a module's target, if one is given; returns an error if a phase before `nextPhase` has used another one.
std::string setTarget(mlir::ModuleOp module, int nextPhase, llvm::StringRef target);

} // namespace partita::tool

#endif // PARTITA_TOOLS_TARGETOPTION_H
