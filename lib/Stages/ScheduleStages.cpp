//===- ScheduleStages.cpp - schedule-stages -----------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Stages/Passes.h"
#include "partita/Stages/Schedule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

namespace partita {
#define GEN_PASS_DEF_SCHEDULESTAGESPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;
using train::OrderAttr;
using train::Slot;

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
    FailureOr<stages::Schedule> table = stages::scheduleOf(getOperation());
    if (failed(table) || failed(check(loops, *table)))
      return signalPassFailure();
    schedule = getOperation()
                   ->getAttrOfType<train::ScheduleAttr>(train::TrainDialect::kSchedule)
                   .getName()
                   .str();
    for (auto [stage, loop] : loops)
      if (failed(checkPasses(*table, loop, stage)))
        return signalPassFailure();
    if (table->microBatches < table->stages)
      reportTooFew(*table);
    else
      reportWaits(*table, loops);
    for (auto [stage, loop] : loops) {
      loop.setOrderAttr(OrderAttr::get(&getContext(), ArrayRef<Slot>(table->slots[stage])));
      if (stage + 1 == table->stages && stages::lastJoins(*table))
        loop->setAttr(pipe::PipeDialect::kMayJoin, UnitAttr::get(&getContext()));
      for (Region &region : loop.getLater())
        if (loop.getPass(loop.numberOf(region)).kind != train::PassKind::Forward)
          provenance::markBackward(region.front());
      ++scheduled;
    }
    getOperation()->removeAttr(train::TrainDialect::kSchedule); // each stage has its own order now
  }

private:
  /// Finds the stage's only loop with a backward pass; null if it has none.
  static LogicalResult findLoop(ModuleOp module, AccumulateOp &found) {
    WalkResult result =
        module.walk([&](AccumulateOp loop) -> WalkResult {
          if (!loop.isUnscheduled())
            return WalkResult::advance();
          if (found)
            return loop.emitError()
                   << "is a second loop over micro-batches, and a stage's schedule is of one";
          found = loop;
          return WalkResult::advance();
        });
    return failure(result.wasInterrupted());
  }

  LogicalResult check(std::map<int64_t, AccumulateOp> &loops, const stages::Schedule &table) {
    for (auto [stage, loop] : loops) {
      if (stage < 0 || stage >= table.stages)
        return getOperation().emitError() << "schedule: there is a stage " << stage
                                          << " of a program of " << table.stages << " stages";
      if (!loop)
        return getOperation().emitError()
               << "schedule: stage " << stage << " has no loop over micro-batches, others have";
      if (loop.getCount() != table.microBatches)
        return loop.emitError() << "runs over " << loop.getCount()
                                << " micro-batches, and the schedule over " << table.microBatches;
    }
    return success();
  }

  /// Checks that each pass of the loop has slots, and each slot a pass.
  static LogicalResult checkPasses(const stages::Schedule &table, AccumulateOp loop,
                                   int64_t stage) {
    SmallVector<train::PassName> passes = loop.getPasses();
    for (const Slot &slot : table.slots[stage])
      if (train::PassName pass = slot.pass(); !llvm::is_contained(passes, pass))
        return loop.emitError() << "has no " << pass.text()
                                << " region for the schedule's slots of stage " << stage
                                << (pass.kind == train::PassKind::Weights
                                        ? "; split-backward makes it"
                                        : "");
    for (train::PassName pass : passes)
      if (llvm::none_of(table.slots[stage], [&](const Slot &slot) { return slot.pass() == pass; }))
        return loop.emitError() << "has a " << pass.text()
                                << " region, and the schedule no slots for it on stage " << stage;
    return success();
  }

  /// Returns the share of a step that each stage idles, if all passes take equally long: the stages
  /// then have equal work.
  static double idleShare(const stages::ScheduleReport &equal) {
    return (equal.time - equal.work.front()) / equal.time;
  }
  static double idleShare(const stages::Schedule &table) {
    return idleShare(stages::report(table, stages::equalCosts()));
  }

  static std::string percent(double share) { return llvm::formatv("{0:F0} %", 100 * share).str(); }

  /// With fewer micro-batches than stages, there is no time at which all stages work.
  void reportTooFew(const stages::Schedule &table) {
    InFlightDiagnostic warning = getOperation().emitWarning();
    warning << "schedule: " << table.microBatches
            << (table.microBatches == 1 ? " micro-batch is" : " micro-batches are") << " less than "
            << table.stages << " stages need, which idle for " << percent(idleShare(table))
            << " of a step if all passes take equally long";
    std::string ignored;
    int more = 4 * table.stages;
    std::optional<stages::Schedule> better =
        stages::isFile(schedule)
            ? std::nullopt
            : stages::makeSchedule(schedule, table.stages, more, table.chunks, ignored);
    if (better)
      warning << "; with " << more << " (--accumulate " << more << "), for "
              << percent(idleShare(*better));
  }

  /// Reports waits that the schedule does not expect. It may rely on stages that begin and end a
  /// step one after another, but a sum over stages makes all of them wait for the last one.
  void reportWaits(const stages::Schedule &table, const std::map<int64_t, AccumulateOp> &loops) {
    llvm::SetVector<StringRef> sums;
    for (auto [stage, loop] : loops)
      loop->getParentOfType<func::FuncOp>().walk([&](pipe::SumOp sum) {
        if (!sum->getParentOfType<AccumulateOp>())
          sums.insert(sum.getReason().value_or("a sum over stages"));
      });
    stages::ScheduleReport report = stages::report(table, stages::equalCosts());
    double inside = report.idleInside / report.time, idle = idleShare(report);
    if (sums.empty() || idle <= inside)
      return;
    getOperation().emitWarning()
        << "schedule: " << schedule << " leaves stages idle for " << percent(inside)
        << " of a step only if nothing is summed over stages between steps; here they wait for "
        << llvm::join(sums, ", ") << ", and idle for " << percent(idle)
        << " if all passes take equally long";
  }

  std::string schedule; ///< the name
};

} // namespace
