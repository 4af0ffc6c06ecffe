//===- NoteSchedule.cpp - note-schedule -----------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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

/// Adds a backward slot after each forward slot, for forward orders whose regions contain both.
train::OrderAttr withBackward(train::OrderAttr order) {
  SmallVector<train::Slot> slots;
  for (train::Slot slot : order.getSlots()) {
    slots.push_back(slot);
    slots.push_back({{train::PassKind::Backward, slot.chunk}, slot.microBatch});
  }
  return train::OrderAttr::get(order.getContext(), ArrayRef(slots));
}

struct NoteSchedule : partita::impl::NoteSchedulePassBase<NoteSchedule> {
  using NoteSchedulePassBase::NoteSchedulePassBase;

  void runOnOperation() override {
    for (ModuleOp stage : pipe::stagesOf(getOperation())) {
      if (!pipe::stageOf(stage))
        continue;
      stage.walk([&](AccumulateOp loop) {
        if (loop.getOrderAttr())
          note(stage, loop);
      });
      auto forward = train::lookup<func::FuncOp>(stage, train::EntryPoint::Forward);
      if (forward && !stage->hasAttr(train::TrainDialect::kCosts))
        note(stage, forward);
    }
  }

private:
  /// What an op begins to reduce in the last slot of its pass, in bytes.
  static int64_t reducedBy(Operation *op) {
    auto collective = dyn_cast<CollectiveInterface>(op);
    bool starts = collective && collective.isStart() && op->hasAttr(train::TrainDialect::kLast);
    return starts ? collective.getWireBytes() : 0;
  }

  /// Notes what a stage without a schedule (inference) costs.
  static void note(ModuleOp stage, func::FuncOp forward) {
    int64_t cost = 0;
    for (Operation &op : forward.getBody().front().without_terminator())
      if (!isa<pipe::SendOp>(op))
        cost += analysis::passCostsOf(&op).forward;
    stage->setAttr(train::TrainDialect::kForwardCost, Builder(stage).getI64IntegerAttr(cost));
  }

  void note(ModuleOp stage, AccumulateOp loop) {
    Costs costs;
    for (auto [pass, region] : llvm::zip(loop.getPasses(), loop->getRegions())) {
      train::PassName backward = pass;
      if (!loop.hasBackward())
        backward.kind = train::PassKind::Backward;
      Cost &own = costOf(costs, pass), &ofBackward = costOf(costs, backward);
      for (Operation &op : region.front().without_terminator()) {
        ofBackward.reduced += reducedBy(&op);
        if (isa<pipe::SendOp>(op))
          continue;
        analysis::PassCosts cost = analysis::passCostsOf(&op);
        own.cost += cost.forward;
        ofBackward.cost += cost.backward;
        if (ofBackward.reduced > 0) // a part of the pass's cost: after the first start
          ofBackward.beside += cost.backward + (loop.hasBackward() ? cost.forward : 0);
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
