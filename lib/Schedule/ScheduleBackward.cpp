//===- ScheduleBackward.cpp - joins each micro-batch's two passes ----------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "partita/Schedule/Passes.h"

namespace partita {
#define GEN_PASS_DEF_SCHEDULEBACKWARDPASS
#include "partita/Schedule/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns true if the loop's passes alternate and its stage may join them. A pass that waits for
/// another stage stays apart, since what the forward pass sends comes first.
bool runsInTurn(train::AccumulateOp loop) {
  std::optional<train::OrderAttr> order = loop.getOrder();
  if (!order || loop->getNumRegions() != 2 || loop.getPass(1).kind != train::PassKind::Backward)
    return false;
  if (!loop->hasAttr(pipe::PipeDialect::kMayJoin) ||
      !loop->getRegion(1).getOps<pipe::RecvOp>().empty())
    return false;
  return train::alternate(order->getSlots());
}

/// Replaces each pair of slots by one.
train::OrderAttr joinSlots(train::OrderAttr order) {
  SmallVector<train::Slot> slots;
  for (train::Slot slot : order.getSlots())
    if (slot.kind == train::PassKind::Forward)
      slots.push_back(slot);
  return train::OrderAttr::get(order.getContext(), ArrayRef(slots));
}

void join(train::AccumulateOp loop) {
  Block &forward = loop.getBody().front();
  auto yield = cast<train::YieldOp>(forward.getTerminator());
  SmallVector<Value> parts(yield.getValues());
  for (Region &region : loop.getLater()) {
    Block &later = region.front();
    if (loop.getPass(loop.numberOf(region)).kind != train::PassKind::Forward)
      provenance::markBackward(later); // since no region tells any more
    for (BlockArgument argument : later.getArguments())
      argument.replaceAllUsesWith(train::forwardOf(argument));
    llvm::append_range(parts, cast<train::YieldOp>(later.getTerminator()).getValues());
  }
  for (Region &region : loop.getLater())
    forward.getOperations().splice(yield->getIterator(), region.front().getOperations(),
                                   region.front().begin(),
                                   region.front().getTerminator()->getIterator());
  OpBuilder builder(loop);
  auto joined = train::AccumulateOp::create(builder, loop.getLoc(), loop.getSums().getTypes(),
                                            loop.getBatches());
  joined->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  if (std::optional<train::OrderAttr> order = loop.getOrder())
    joined.setOrderAttr(joinSlots(*order));
  joined.getBody().takeBody(loop.getBody());
  yield.getSavedMutable().clear();
  yield.getValuesMutable().assign(parts);
  loop->replaceAllUsesWith(joined);
  loop.erase();
}

struct ScheduleBackward : partita::impl::ScheduleBackwardPassBase<ScheduleBackward> {
  void runOnOperation() override {
    SmallVector<train::AccumulateOp> loops;
    getOperation().walk([&](train::AccumulateOp loop) {
      if (loop.isUnscheduled() || runsInTurn(loop))
        loops.push_back(loop);
    });
    for (train::AccumulateOp loop : loops)
      join(loop);
    joined += loops.size();
  }
};

} // namespace
