//===- PlanOptions.h - the plan on the command line ---------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_PLANOPTIONS_H
#define PARTITA_TOOLS_PLANOPTIONS_H

#include "partita/Phases/Phases.h"
#include "tools/partita/Session.h"

namespace partita::tool {

/// Declares a plan option; its value goes into `plan`, checked.
void declarePlanOption(OptionSet &options, const PlanOption &option, Plan &plan);
/// Declares every plan option; values go into `plan`, checked.
void declarePlanOptions(OptionSet &options, Plan &plan);

/// Merges the command line's plan with the one on the module (if a phase wrote it) and puts the
/// result on the module. Changing an option that a phase has already used is an error, since it
/// would have no effect. Returns false after a message.
bool settlePlan(Session &session, mlir::ModuleOp module, int nextPhase, Plan &plan);

} // namespace partita::tool

#endif // PARTITA_TOOLS_PLANOPTIONS_H
