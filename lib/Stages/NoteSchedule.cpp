//===- NoteSchedule.cpp - note-schedule -----------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "partita/Analysis/Work.h"
#include "partita/Stages/Passes.h"
#include <map>

namespace partita {
#define GEN_PASS_DEF_NOTESCHEDULEPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;

namespace {

/// Of each kind of pass the costs of its chunks.
using Costs = std::map<std::string, SmallVector<int64_t>>;

struct NoteSchedule : partita::impl::NoteSchedulePassBase<NoteSchedule> {
  using NoteSchedulePassBase::NoteSchedulePassBase;

  void runOnOperation() override {
    for (ModuleOp stage : pipe::stagesOf(getOperation()))
      stage.walk([&](AccumulateOp loop) {
        if (loop.getOrderAttr() && pipe::stageOf(stage))
          note(stage, loop);
      });
  }

private:
  void note(ModuleOp stage, AccumulateOp loop) {
    Costs costs;
    for (auto [pass, region] : llvm::zip(loop.getPasses(), loop->getRegions())) {
      SmallVector<int64_t> &ofChunks = costs[train::stringifyPassKind(pass.kind).str()];
      ofChunks.resize(std::max<size_t>(ofChunks.size(), pass.chunk + 1), 0);
      ofChunks[pass.chunk] = costOf(region);
    }
    Builder builder(&getContext());
    SmallVector<NamedAttribute> entries{builder.getNamedAttr("order", loop.getOrderAttr())};
    for (auto &[kind, ofChunks] : costs)
      entries.push_back(builder.getNamedAttr(kind, builder.getDenseI64ArrayAttr(ofChunks)));
    stage->setAttr(pipe::PipeDialect::kSchedule, builder.getDictionaryAttr(entries));
    ++noted;
  }

  static int64_t costOf(Region &region) {
    int64_t cost = 0;
    for (Operation &op : region.front().without_terminator())
      if (!isa<pipe::SendOp>(op))
        cost += analysis::workOf(&op).cost();
    return cost;
  }
};

} // namespace
