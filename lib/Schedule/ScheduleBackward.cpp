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
  Block &forward = loop.getBody().front(), &backward = loop.getBackward().front();
  provenance::markBackward(backward); // which no region says any more
  for (BlockArgument argument : backward.getArguments())
    argument.replaceAllUsesWith(train::forwardOf(argument));
  auto yield = cast<train::YieldOp>(forward.getTerminator()),
       gradients = cast<train::YieldOp>(backward.getTerminator());
  SmallVector<Value> parts(yield.getValues());
  llvm::append_range(parts, gradients.getValues());
  gradients.erase();
  forward.getOperations().splice(yield->getIterator(), backward.getOperations());
  yield.getSavedMutable().clear();
  yield.getValuesMutable().assign(parts);
  backward.erase();
}

struct ScheduleBackward : partita::impl::ScheduleBackwardPassBase<ScheduleBackward> {
  void runOnOperation() override {
    getOperation().walk([&](train::AccumulateOp loop) {
      if (!loop.isUnscheduled())
        return;
      join(loop);
      ++joined;
    });
  }
};

} // namespace
