//===- ScheduleStages.cpp - schedule-stages -----------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "partita/Stages/Passes.h"
#include "partita/Stages/Schedule.h"
#include <map>

namespace partita {
#define GEN_PASS_DEF_SCHEDULESTAGESPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;
using train::OrderAttr;

namespace {

struct ScheduleStages : partita::impl::ScheduleStagesPassBase<ScheduleStages> {
  using ScheduleStagesPassBase::ScheduleStagesPassBase;

  void runOnOperation() override {
    std::map<int64_t, AccumulateOp> loops; // by stage
    pipe::Positions layout;
    for (auto module : getOperation().getOps<ModuleOp>()) {
      std::optional<int64_t> stage = pipe::stageOf(module);
      if (!stage)
        continue;
      layout = pipe::positionsOf(module).value_or(layout);
      if (failed(findLoop(module, loops[*stage])))
        return signalPassFailure();
    }
    bool trains = llvm::any_of(loops, [](auto &each) { return each.second; });
    if (layout.stages < 2 || !trains)
      return;
    if (failed(check(loops, layout.stages)))
      return signalPassFailure();
    std::string problem;
    std::optional<stages::Schedule> table =
        tableOf(layout, static_cast<int>(loops.begin()->second.getCount()), problem);
    if (!table) {
      getOperation().emitError() << "schedule: " << problem;
      return signalPassFailure();
    }
    for (auto [stage, loop] : loops) {
      SmallVector<OrderAttr::Slot> order;
      for (const stages::Slot &slot : table->slots[stage])
        order.push_back({{static_cast<train::PassKind>(slot.kind), slot.chunk}, slot.microBatch});
      loop.setOrderAttr(OrderAttr::get(&getContext(), ArrayRef<OrderAttr::Slot>(order)));
      for (Region &region : loop.getLater())
        if (loop.getPass(loop.numberOf(region)).kind != train::PassKind::Forward)
          provenance::markBackward(region.front());
      ++scheduled;
    }
  }

private:
  /// The stage's one loop with a backward pass; null where it has none.
  static LogicalResult findLoop(ModuleOp module, AccumulateOp &found) {
    WalkResult result = module.walk([&](AccumulateOp loop) -> WalkResult {
      if (!loop.isUnscheduled())
        return WalkResult::advance();
      if (found)
        return loop.emitError() << "is a second loop over micro-batches, and a stage's schedule is of one";
      found = loop;
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult check(std::map<int64_t, AccumulateOp> &loops, int64_t stages) {
    int64_t count = loops.begin()->second ? loops.begin()->second.getCount() : 0;
    for (auto [stage, loop] : loops) {
      if (stage < 0 || stage >= stages)
        return getOperation().emitError()
               << "schedule: there is a stage " << stage << " of a program of " << stages << " stages";
      if (!loop)
        return getOperation().emitError()
               << "schedule: stage " << stage << " has no loop over micro-batches, others have";
      if (loop.getCount() != count)
        return loop.emitError() << "runs over " << loop.getCount() << " micro-batches, and stage 0 over "
                                << count;
    }
    return success();
  }

  static std::string text(const pipe::Positions &layout) {
    return std::to_string(layout.chunks) + (layout.chunks == 1 ? " chunk" : " chunks") + " a stage" +
           (layout.isWave ? " in a wave" : "");
  }

  /// Checked. Nothing, and `problem` set, where there is none.
  std::optional<stages::Schedule> tableOf(const pipe::Positions &layout, int microBatches,
                                          std::string &problem) {
    std::optional<stages::Schedule> table =
        stages::isFile(schedule)
            ? stages::readSchedule(schedule, problem)
            : stages::makeSchedule(schedule, static_cast<int>(layout.stages), microBatches,
                                   static_cast<int>(layout.chunks), problem);
    if (!table)
      return std::nullopt;
    if (table->stages != layout.stages)
      problem = "the file's is for " + std::to_string(table->stages) + " stages, the program has " +
                std::to_string(layout.stages);
    else if (table->layout() != layout)
      problem = "the file's has " + text(table->layout()) + ", the program " + text(layout);
    else if (table->microBatches != microBatches)
      problem = "the file's is for " + std::to_string(table->microBatches) +
                " micro-batches, the program accumulates " + std::to_string(microBatches);
    else if (table->splitsBackward)
      problem = schedule + " has slots for weights, which programs do not have yet; gpipe, 1f1b and "
                           "interleaved have none";
    else
      problem = stages::findProblem(*table);
    if (problem.empty())
      problem = stages::findStall(*table);
    return problem.empty() ? table : std::nullopt;
  }
};

} // namespace
