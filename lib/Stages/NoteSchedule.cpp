//===- NoteSchedule.cpp - note-schedule -----------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
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

/// The order of forward and backward passes, where each region has both.
train::OrderAttr withBackward(train::OrderAttr order) {
  SmallVector<train::OrderAttr::Slot> slots;
  for (train::OrderAttr::Slot slot : order.getSlots()) {
    slots.push_back(slot);
    slots.push_back({{train::PassKind::Backward, slot.pass.chunk}, slot.microBatch});
  }
  return train::OrderAttr::get(order.getContext(), ArrayRef(slots));
}

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
  /// What the pass begins to reduce in its last slot, in bytes, and the cost of what it computes behind the first start.
  static void noteReductions(Region &region, train::PassName pass, Costs &reduced, Costs &beside) {
    int64_t bytes = 0, cost = 0;
    for (Operation &op : region.front().without_terminator()) {
      auto collective = dyn_cast<CollectiveInterface>(op);
      if (collective && collective.isStart() && op.hasAttr(train::TrainDialect::kLast))
        bytes += collective.getWireBytes();
      else if (bytes > 0)
        cost += analysis::workOf(&op).cost();
    }
    if (bytes == 0)
      return;
    for (auto [costs, value] : {std::pair(&reduced, bytes), {&beside, cost}}) {
      SmallVector<int64_t> &ofChunks = (*costs)[train::stringifyPassKind(pass.kind).str()];
      ofChunks.resize(std::max<size_t>(ofChunks.size(), pass.chunk + 1), 0);
      ofChunks[pass.chunk] = value;
    }
  }

  Attribute asAttribute(const Costs &costs) {
    Builder builder(&getContext());
    SmallVector<NamedAttribute> entries;
    for (auto &[kind, ofChunks] : costs)
      entries.push_back(builder.getNamedAttr(kind, builder.getDenseI64ArrayAttr(ofChunks)));
    return builder.getDictionaryAttr(entries);
  }

  void note(ModuleOp stage, AccumulateOp loop) {
    Costs costs;
    auto add = [&](train::PassName pass, int64_t cost) {
      SmallVector<int64_t> &ofChunks = costs[train::stringifyPassKind(pass.kind).str()];
      ofChunks.resize(std::max<size_t>(ofChunks.size(), pass.chunk + 1), 0);
      ofChunks[pass.chunk] += cost;
    };
    Costs reduced, beside;
    for (auto [pass, region] : llvm::zip(loop.getPasses(), loop->getRegions())) {
      train::PassName backward = pass;
      if (!loop.hasBackward())
        backward.kind = train::PassKind::Backward;
      add(pass, 0);
      add(backward, 0);
      noteReductions(region, backward, reduced, beside);
      for (Operation &op : region.front().without_terminator())
        if (!isa<pipe::SendOp>(op)) {
          // A loss fused with its gradients: one matmul of the forward pass, two of the backward pass.
          int64_t cost = analysis::workOf(&op).cost(),
                  later = provenance::isBackward(&op)         ? cost
                          : isa<tx::ClassifierLossGradOp>(op) ? cost - cost / 3
                                                              : 0;
          add(pass, cost - later);
          add(backward, later);
        }
    }
    Builder builder(&getContext());
    train::OrderAttr order = loop.getOrderAttr();
    SmallVector<NamedAttribute> entries{
        builder.getNamedAttr("order", loop.hasBackward() ? order : withBackward(order))};
    for (auto &[kind, ofChunks] : costs)
      entries.push_back(builder.getNamedAttr(kind, builder.getDenseI64ArrayAttr(ofChunks)));
    if (!reduced.empty()) {
      entries.push_back(builder.getNamedAttr("reduced", asAttribute(reduced)));
      entries.push_back(builder.getNamedAttr("beside", asAttribute(beside)));
    }
    stage->setAttr(pipe::PipeDialect::kSchedule, builder.getDictionaryAttr(entries));
    ++noted;
  }
};

} // namespace
