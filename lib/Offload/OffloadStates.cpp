//===- OffloadStates.cpp - offloads optimizer states and their updates ------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Train/Train.h"
#include "lib/Offload/OffloadWords.h"
#include "partita/Offload/Passes.h"

namespace partita {
#define GEN_PASS_DEF_OFFLOADSTATESPASS
#include "partita/Offload/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using offload::OffloadDialect;

namespace {

struct OffloadStates : partita::impl::OffloadStatesPassBase<OffloadStates> {
  using OffloadStatesPassBase::OffloadStatesPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<bool> wanted = offload::names(module, what, "optimizer");
    if (failed(wanted))
      return signalPassFailure();
    if (!*wanted)
      return;
    bool any = false;
    UnitAttr mark = UnitAttr::get(&getContext());
    bool looked = false; // whether ops on the device read a state, too
    module.walk([&](train::OptimizerInterface update) {
      auto looksAtStates = [](Operation *user) { return isa<train::DirectionSquaresOp>(user); };
      for (Value value : update->getOperands())
        looked |= train::stateReadBy(value) && llvm::any_of(value.getUsers(), looksAtStates);
      SmallVector<train::StateOp> kept = train::stateSymbols(update);
      if (kept.empty())
        return;
      states += kept.size();
      any = true;
      update->setAttr(OffloadDialect::kOnHost, mark);
      for (train::StateOp state : kept)
        state->setAttr(OffloadDialect::kHost, mark);
    });
    if (looked) {
      module.emitError()
          << "offload: optimizer: LAMB's trust ratio is computed where the parameter "
             "is, of states that must be there too";
      return signalPassFailure();
    }
    if (any)
      return;
    module.emitError() << "offload: optimizer: there are no states that the host could keep; the "
                          "optimizer has none, or the program does not train";
    signalPassFailure();
  }
};

} // namespace
