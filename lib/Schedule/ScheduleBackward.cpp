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

/// Which ops are the backward pass's is no longer said by a region.
void markBackward(Block &block) {
  block.walk([](Operation *op) {
    if (!provenance::isBackward(op))
      provenance::set(op, provenance::kBackward, UnitAttr::get(op->getContext()));
  });
}

void join(train::AccumulateOp loop) {
  Block &forward = loop.getBody().front(), &backward = loop.getBackward().front();
  markBackward(backward);
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
      if (!loop.hasBackward())
        return;
      join(loop);
      ++joined;
    });
  }
};

} // namespace
