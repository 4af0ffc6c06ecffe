//===- ScheduleBackward.cpp - a micro-batch's backward pass behind its forward pass ----------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Train/Train.h"
#include "partita/Schedule/Passes.h"

namespace partita {
#define GEN_PASS_DEF_SCHEDULEBACKWARDPASS
#include "partita/Schedule/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

void join(train::AccumulateOp loop) {
  Block &forward = loop.getBody().front();
  auto yield = cast<train::YieldOp>(forward.getTerminator());
  SmallVector<Value> parts(yield.getValues());
  for (Region &region : loop.getLater()) {
    Block &later = region.front();
    if (loop.getPass(loop.numberOf(region)).kind != train::PassKind::Forward)
      provenance::markBackward(later); // which no region says any more
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
      if (loop.isUnscheduled())
        loops.push_back(loop);
    });
    for (train::AccumulateOp loop : loops)
      join(loop);
    joined += loops.size();
  }
};

} // namespace
