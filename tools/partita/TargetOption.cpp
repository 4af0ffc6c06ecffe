//===- TargetOption.cpp - what a program runs on ----------------------------------------------===//

#include "tools/partita/TargetOption.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "partita/Phases/Phases.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;

static std::string allTargets(StringRef separator) {
  std::string text;
  for (const rt::Target *target : rt::Target::all())
    text += (text.empty() ? "" : separator.str()) + target->getName().str();
  return text;
}

static std::string checkTarget(StringRef text) {
  return rt::Target::find(text)
             ? ""
             : ("'" + text + "' is not a target; known targets: " + allTargets(", ")).str();
}

void partita::tool::declareTarget(OptionSet &options, std::string &target) {
  options.custom("target", allTargets("|"), rt::Target::all().front()->getName(),
                 "what the program runs on", [&target](StringRef text) {
                   target = text.str();
                   return checkTarget(text);
                 });
}

std::string partita::tool::setTarget(ModuleOp module, int nextPhase, StringRef target) {
  const rt::Target &now = rt::Target::of(module);
  const rt::Target &wanted = target.empty() ? now : *rt::Target::find(target);
  if (&now == &wanted)
    return {};
  // Phase 'fuse' chooses kernels that only some targets have; the memory spaces depend on the
  // target in any case.
  bool hasKernels = wanted.fusesMatmuls() || !now.fusesMatmuls();
  std::string phase = hasKernels ? "memory" : "fuse",
              done = hasKernels ? "laid out this module's memory" : "made this module's kernels";
  if (nextPhase > phaseIndex(phase))
    return "--target: phase '" + phase + "' has " + done + " for the target '" +
           now.getName().str() + "'; start again from a phase before it";
  auto name = StringAttr::get(module.getContext(), wanted.getName());
  SmallVector<ModuleOp> modules = pipe::stagesOf(module);
  modules.push_back(module);
  for (ModuleOp each : modules)
    if (&wanted == rt::Target::all().front())
      each->removeAttr(rt::RtDialect::kTarget);
    else
      each->setAttr(rt::RtDialect::kTarget, name);
  return {};
}
