//===- PassesHelp.cpp - our passes, by phase, in running order --------------------------------===//

#include "partita/Phases/PassesHelp.h"
#include "mlir/Pass/PassRegistry.h"
#include "partita/Phases/Phases.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace partita;

/// The name in "func.func(name)" or "name{options}".
static StringRef nameOf(StringRef pass) {
  pass = pass.split('{').first;
  return pass.contains('(') ? pass.split('(').second.take_until([](char c) { return c == ')'; })
                            : pass;
}

/// The plan options that a phase's passes read.
static llvm::SetVector<StringRef> planOptionsOf(const Phase &phase) {
  llvm::SetVector<StringRef> options;
  for (StringRef rest : phase.passes)
    while (!(rest = rest.split("${").second).empty()) {
      StringRef name = rest.take_until([](char c) { return c == '}' || c == '.'; });
      if (findPlanOption(name)) // not another phase's passes, nor a hint
        options.insert(name);
    }
  if (options.contains("mesh"))
    options.insert(kHpz); // which makes two axes of one
  return options;
}

void partita::printPassesHelp() {
  llvm::raw_ostream &os = llvm::outs();
  os << "Partita's phases and passes, in running order. A phase is a pipeline with the plan's options ('partita compile\n"
        "--help'): --partita-partition=\"mesh=dp=2,tp=2\"; those not given are the module's (train.plan).\n"
        "A pass alone: --partition-seed=\"mesh=dp=2\"; several:\n"
        "--pass-pipeline='builtin.module(partition-seed{mesh=dp=2},partition-propagate)'. The passes of a plan, with their\n"
        "options: partita compile --print-pipeline. Upstream's passes and options follow.\n";
  llvm::StringSet<> told; // upstream's stand in several phases
  for (const Phase &phase : phases()) {
    os << "\n--partita-" << phase.name << ": " << phase.reason << "\n";
    if (auto options = planOptionsOf(phase); !options.empty())
      os << "  options: " << llvm::join(options, ", ") << "\n";
    SmallVector<StringRef> passes(phase.passes.begin(), phase.passes.end());
    passes.push_back("note-phase"); // after those of every phase
    for (StringRef pass : passes)
      if (const PassInfo *info = PassInfo::lookup(nameOf(pass));
          info && told.insert(nameOf(pass)).second)
        info->printHelpStr(/*indent=*/4, /*descIndent=*/36);
  }
  os << "\n";
}
