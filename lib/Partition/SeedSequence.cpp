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
      // Only notes whether it is possible, so that reports about memory or bytes may propose it.
      ScopedDiagnosticHandler silence(&getContext(), [](Diagnostic &) { return success(); });
      if (par::MeshAttr::of(module).sizeOf(par::kTensorAxis) > 1 &&
          succeeded(split(module, /*apply=*/false)))
        module->setAttr(analysis::kMaySplitSequence, UnitAttr::get(&getContext()));
      return;
    }
    if (par::MeshAttr::of(module).sizeOf(par::kTensorAxis) <= 1) {
      module.emitError() << "sequence parallelism splits over mesh axis '" << par::kTensorAxis
                         << "', of which there is one rank; a mesh with " << par::kTensorAxis
                         << "=2 or more has what it splits";
      return signalPassFailure();
    }
    if (failed(split(module, /*apply=*/true)))
      signalPassFailure();
  }

private:
  LogicalResult split(ModuleOp module, bool apply) {
    SampleSplits splits(module);
    const SequenceOrder order = SequenceOrder::ofTensorAxis(module);
    if (failed(splits.run()))
      return failure();
    bool any = false; // statistics may be compiled out of MLIR
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      SequenceSplit sequence(function, splits, order);
      if (failed(sequence.run(apply)))
        return failure();
      any |= sequence.openSums > 0;
      openSums += apply ? sequence.openSums : 0;
      gathers += sequence.gathers;
      narrows += sequence.narrows;
    }
    if (!any)
      return module.emitError()
             << "sequence parallelism finds nothing to split: no matmul leaves a sum over mesh axis '"
             << par::kTensorAxis << "' open whose rows are more than the batch";
    return success();
  }
};

} // namespace
