//===- Transfers.cpp - lists what moves between device and host -------------------------------===//

#include "partita/Analysis/Transfers.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace partita;
using namespace partita::analysis;

int64_t analysis::timesOf(Operation *op) {
  int64_t times = 1;
  for (Operation *parent = op->getParentOp(); parent; op = parent, parent = op->getParentOp())
    if (auto loop = dyn_cast<train::AccumulateOp>(parent);
        loop && !op->hasAttr(train::TrainDialect::kLast))
      times *= loop.getCount();
  return times;
}

Transfers Transfers::of(func::FuncOp function) {
  Transfers result;
  function.walk([&](Operation *op) {
    if (std::optional<offload::Direction> direction = offload::directionOf(op))
      (*direction == offload::Direction::ToHost ? result.toHost : result.toDevice) +=
          timesOf(op) * bytesOf(op->getOperand(0).getType());
    if (!offload::isMadeOnHost(op))
      return;
    int64_t value = offload::isOnHost(op->getOperand(0)) ? 0 : bytesOf(op->getOperand(0).getType());
    result.toHost += timesOf(op) * (value + bytesOf(op->getOperand(1).getType()));
    Value rounded = cast<train::OptimizerInterface>(op).getRounded();
    result.toDevice += timesOf(op) * (value + (rounded ? bytesOf(rounded.getType()) : 0));
  });
  return result;
}
