//===- NoteSchedule.cpp - note-schedule -----------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
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

struct Cost {
  int64_t cost = 0, reduced = 0, beside = 0; ///< the members of #train.pass_cost
};
/// By kind and chunk.
using Costs = std::map<std::pair<train::PassKind, int64_t>, Cost>;

Cost &costOf(Costs &costs, train::PassName pass) { return costs[{pass.kind, pass.chunk}]; }

/// The order of forward and backward passes, where each region has both.
train::OrderAttr withBackward(train::OrderAttr order) {
  SmallVector<train::OrderAttr::Slot> slots;
  for (train::OrderAttr::Slot slot : order.getSlots()) {
    slots.push_back(slot);
    slots.push_back({{train::PassKind::Backward, slot.pass.chunk}, slot.microBatch});
  }
  return train::OrderAttr::get(order.getContext(), ArrayRef(slots));
}

/// How much of an op's cost is of the backward pass. Of an op that fuses both, that of its gradients' matmuls.
int64_t costOfGradients(Operation *op, int64_t cost) {
  if (provenance::isBackward(op))
    return cost;
  auto work = dyn_cast<ShardInterface>(op);
  if (!work || work.getGradientMatmuls() == 0)
    return 0;
  int64_t matmuls = work.getMatmuls();
  return cost - cost / matmuls * (matmuls - work.getGradientMatmuls());
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
  static void noteReductions(Region &region, Cost &cost) {
    for (Operation &op : region.front().without_terminator()) {
      auto collective = dyn_cast<CollectiveInterface>(op);
      if (collective && collective.isStart() && op.hasAttr(train::TrainDialect::kLast))
        cost.reduced += collective.getWireBytes();
      else if (cost.reduced > 0)
        cost.beside += analysis::workOf(&op).cost();
    }
  }

  void note(ModuleOp stage, AccumulateOp loop) {
    Costs costs;
    for (auto [pass, region] : llvm::zip(loop.getPasses(), loop->getRegions())) {
      train::PassName backward = pass;
      if (!loop.hasBackward())
        backward.kind = train::PassKind::Backward;
      Cost &own = costOf(costs, pass), &ofBackward = costOf(costs, backward);
      noteReductions(region, ofBackward);
      for (Operation &op : region.front().without_terminator())
        if (!isa<pipe::SendOp>(op)) {
          int64_t cost = analysis::workOf(&op).cost(), later = costOfGradients(&op, cost);
          own.cost += cost - later;
          ofBackward.cost += later;
        }
    }
    SmallVector<Attribute> passes;
    for (auto &[pass, cost] : costs)
      passes.push_back(train::PassCostAttr::get(
          &getContext(), train::PassAttr::get(&getContext(), pass.first, pass.second), cost.cost,
          cost.reduced, cost.beside));
    train::OrderAttr order = loop.getOrderAttr();
    stage->setAttr(train::TrainDialect::kCosts,
                   train::CostsAttr::get(&getContext(),
                                         loop.hasBackward() ? order : withBackward(order),
                                         ArrayAttr::get(&getContext(), passes)));
    ++noted;
  }
};

} // namespace
