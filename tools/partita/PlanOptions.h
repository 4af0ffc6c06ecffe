//===- PlanOptions.h - the plan on the command line ---------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_PLANOPTIONS_H
#define PARTITA_TOOLS_PLANOPTIONS_H

#include "partita/Phases/Phases.h"
#include "tools/partita/Session.h"

namespace partita::tool {

/// Declares a plan option; what is given goes into `plan`, checked.
void declarePlanOption(OptionSet &options, const PlanOption &option, Plan &plan);
/// Declares every plan option; what is given goes into `plan`, checked.
void declarePlanOptions(OptionSet &options, Plan &plan);

/// Joins the command line's plan with the one that the module brings along (a module that a phase
/// wrote) and writes the result on the module. An option that a phase has already read cannot
/// change any more: that is an error, not a setting without effect. Returns false after a message.
bool settlePlan(Session &session, mlir::ModuleOp module, int nextPhase, Plan &plan);

} // namespace partita::tool

#endif // PARTITA_TOOLS_PLANOPTIONS_H
