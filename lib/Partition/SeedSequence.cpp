//===- SeedSequence.cpp - partition-seed-sequence ---------------------------------------------------===//

#include "lib/Partition/SequenceSplit.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONSEEDSEQUENCEPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct PartitionSeedSequence : partita::impl::PartitionSeedSequencePassBase<PartitionSeedSequence> {
  using PartitionSeedSequencePassBase::PartitionSeedSequencePassBase;

  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    ModuleOp module = getOperation();
    if (!on) {
      // Whoever asks for less memory or fewer bytes is offered it only where it can be had.
      ScopedDiagnosticHandler silence(&getContext(), [](Diagnostic &) { return success(); });
      if (par::MeshAttr::of(module).sizeOf("tp") > 1 && succeeded(split(module, /*apply=*/false)))
        module->setAttr(analysis::kMaySplitSequence, UnitAttr::get(&getContext()));
      return;
    }
    if (par::MeshAttr::of(module).sizeOf("tp") <= 1) {
      module.emitError()
          << "sequence parallelism splits over mesh axis 'tp', of which there is one "
             "rank; a mesh with tp=2 or more has what it splits";
      return signalPassFailure();
    }
    if (failed(split(module, /*apply=*/true)))
      signalPassFailure();
  }

private:
  LogicalResult split(ModuleOp module, bool apply) {
    SampleSplits splits(module);
    if (failed(splits.run()))
      return failure();
    bool any = false; // a statistic counts nothing where MLIR is built without them
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      SequenceSplit sequence(function, splits);
      if (failed(sequence.run(apply)))
        return failure();
      any |= sequence.openSums > 0;
      openSums += apply ? sequence.openSums : 0;
      gathers += sequence.gathers;
      narrows += sequence.narrows;
    }
    if (!any)
      return module.emitError()
             << "sequence parallelism finds nothing to split: no matmul leaves a sum "
                "over mesh axis 'tp' open whose rows are more than the batch";
    return success();
  }
};

} // namespace
