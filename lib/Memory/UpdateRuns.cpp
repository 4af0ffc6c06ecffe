//===- UpdateRuns.cpp - memory that lets updates share a launch -------------------------------===//
//
// Where work is queued, consecutive updates become one launch (gather-updates), but only if none
// writes where another one reads. A rank's new shard, which has memory of its own until it is
// gathered, would fit where the gradient of an earlier update was. So everything that the updates
// of such a run read lives until the run's end, unless this makes the arena larger.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Zero/Zero.h"
#include "partita/Analysis/Work.h"
#include "partita/Memory/Plan.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory;

/// Returns true for an update that may share a launch with others.
static bool isGathered(Operation *op) {
  return isa<train::OptimizerInterface>(op) && !offload::isMadeOnHost(op);
}

/// Returns true if the op may come between the updates of a run.
static bool mayStandBetween(Operation *op) {
  return isa<zero::ShardOp, train::ReadOp, train::WriteOp>(op) ||
         op->hasTrait<OpTrait::ConstantLike>() || analysis::isView(op);
}

/// Extends the lives of what these updates read to the last of them. Returns true if this extends
/// any.
static bool keepOperands(ArrayRef<Operation *> updates, FunctionPlan &plan) {
  if (updates.size() < 2)
    return false;
  int first = plan.number[updates.front()], last = plan.number[updates.back()];
  bool changed = false;
  for (Operation *update : updates)
    for (Value operand : update->getOperands()) {
      auto place = plan.places.find(operand);
      if (place == plan.places.end() || place->second.storage < 0)
        continue;
      Storage &storage = plan.storages[place->second.storage];
      if (storage.space != rt::Space::Arena || storage.last < first || storage.last >= last)
        continue;
      storage.last = last;
      changed = true;
    }
  return changed;
}

void memory::keepForUpdates(func::FuncOp function, FunctionPlan &plan) {
  FunctionPlan kept = plan;
  bool changed = false;
  SmallVector<Operation *> run;
  for (Operation &op : function.getBody().front()) {
    if (isGathered(&op)) {
      run.push_back(&op);
    } else if (!mayStandBetween(&op)) {
      changed |= keepOperands(run, kept);
      run.clear();
    }
  }
  if (!changed)
    return;
  assignOffsets(kept);
  if (kept.arenaBytes <= plan.arenaBytes)
    plan = std::move(kept);
}
