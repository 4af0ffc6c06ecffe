//===- SeedMoves.cpp - partition-seed-moves ---------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "lib/Partition/Seeds.h"
#include "lib/Partition/SequenceSplit.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONSEEDMOVESPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct PartitionSeedMoves : partita::impl::PartitionSeedMovesPassBase<PartitionSeedMoves> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectUnpartitionedForward(*this, module)))
      return signalPassFailure();
    std::optional<pipe::Positions> layout = pipe::positionsOf(module);
    if (!layout || par::MeshAttr::of(module).sizeOf(par::kTensorAxis) <= 1)
      return;
    auto isSent = [&](Operation *op) {
      auto move = dyn_cast<pipe::MoveOp>(op);
      return move && layout->stageOf(move.getChannel().getFrom()) !=
                         layout->stageOf(move.getChannel().getTo());
    };
    SampleSplits splits(module);
    const SequenceOrder order = SequenceOrder::ofTensorAxis(module);
    if (failed(splits.run()))
      return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      SequenceSplit sequence(function, splits, order);
      if (failed(sequence.runOn(isSent, kMoved)))
        return signalPassFailure();
      gathers += sequence.gathers;
      narrows += sequence.narrows;
    }
  }
};

} // namespace
