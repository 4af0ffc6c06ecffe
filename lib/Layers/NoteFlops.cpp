//===- NoteFlops.cpp - note-flops -------------------------------------------------------------===//

#include "dialects/Train/Train.h"
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
    for (auto entry : {train::EntryPoint::TrainStep, train::EntryPoint::Forward})
      if (auto function = train::lookup<func::FuncOp>(module, entry)) {
        std::vector<LayerWork> work = workByLayer(function);
        for (LayerWork &each : work)
          each.backward = entry == train::EntryPoint::TrainStep ? each.backward : 0;
        noted += work.size();
        noteWork(module, work);
        return;
      }
  }
};

} // namespace
