//===- Preconditions.cpp - what a pass may expect of its input --------------------------------===//

#include "partita/Analysis/Preconditions.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace partita;

/// Fails if `tell` reports an error for an op; stops at the first such op.
template <typename Wrong> static LogicalResult expectNone(ModuleOp module, Wrong tell) {
  return failure(module
                     .walk<WalkOrder::PreOrder>([&](Operation *op) {
                       return tell(op) ? WalkResult::interrupt() : WalkResult::advance();
                     })
                     .wasInterrupted());
}

LogicalResult partita::expectForward(const Pass &pass, ModuleOp module) {
  return expectNone(module, [&](Operation *op) {
    if (!isa<train::UpdateOp, train::OptimizerInterface>(op))
      return false;
    op->emitError() << pass.getArgument() << " is for a forward program, before differentiate; '"
                    << op->getName() << "' updates a parameter";
    return true;
  });
}

LogicalResult partita::expectUnpartitionedForward(const Pass &pass, ModuleOp module) {
  if (failed(expectForward(pass, module)))
    return failure();
  auto tell = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !isa_and_nonnull<par::PlacementAttr>(type.getEncoding()))
      return false;
    emitError(value.getLoc())
        << pass.getArgument()
        << " needs an unpartitioned program; this value already has a placement: " << type;
    return true;
  };
  return expectNone(module, [&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (llvm::any_of(block.getArguments(), tell))
          return true;
    return llvm::any_of(op->getResults(), tell);
  });
}

LogicalResult partita::expectScheduled(const Pass &pass, ModuleOp module) {
  return expectNone(module, [&](Operation *op) {
    auto loop = dyn_cast<train::AccumulateOp>(op);
    if (!loop || !loop.isUnscheduled())
      return false;
    loop.emitError()
        << pass.getArgument()
        << " is for a program whose micro-batches are scheduled; schedule-backward comes "
           "first";
    return true;
  });
}
