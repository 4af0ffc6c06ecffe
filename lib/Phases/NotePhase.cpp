//===- NotePhase.cpp - note-phase ---------------------------------------------------------------===//

#include "partita/Phases/Passes.h"
#include "partita/Phases/Phases.h"

namespace partita {
#define GEN_PASS_DEF_NOTEPHASEPASS
#include "partita/Phases/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct NotePhase : partita::impl::NotePhasePassBase<NotePhase> {
  using NotePhasePassBase::NotePhasePassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved(); // nor are ops verified again
    ModuleOp module = getOperation();
    int index = phaseIndex(phase);
    if (index < 0) {
      module.emitError() << "note-phase: there is no phase '" << phase << "'";
      return signalPassFailure();
    }
    if (failed(expectPhaseBefore(module, index)))
      return signalPassFailure();
    if (index > 0 && !module->hasAttr(kPhaseAttr))
      return; // a fragment
    auto name = StringAttr::get(&getContext(), phases()[index].name);
    module->setAttr(kPhaseAttr, name);
    for (auto stage : module.getOps<ModuleOp>()) // each may go on alone
      stage->setAttr(kPhaseAttr, name);
    ++modules;
  }
};

} // namespace
