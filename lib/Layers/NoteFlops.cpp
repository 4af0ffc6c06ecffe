//===- NoteFlops.cpp - note-flops -------------------------------------------------------------===//

#include "partita/Analysis/Flops.h"
#include "partita/Layers/Passes.h"

namespace partita {
#define GEN_PASS_DEF_NOTEFLOPSPASS
#include "partita/Layers/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct NoteFlops : partita::impl::NoteFlopsPassBase<NoteFlops> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (StringRef name : {"train_step", "forward"})
      if (auto function = module.lookupSymbol<func::FuncOp>(name)) {
        std::vector<LayerWork> work = workByLayer(function);
        for (LayerWork &each : work)
          each.backward = name == "train_step" ? each.backward : 0;
        module->setAttr(kNotedWork, noteWork(&getContext(), work));
        return;
      }
  }
};

} // namespace
