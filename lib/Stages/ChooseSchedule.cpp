//===- ChooseSchedule.cpp - choose-schedule -----------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Stages/Passes.h"
#include "partita/Stages/Schedule.h"

namespace partita {
#define GEN_PASS_DEF_CHOOSESCHEDULEPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;

namespace {

struct ChooseSchedule : partita::impl::ChooseSchedulePassBase<ChooseSchedule> {
  using ChooseSchedulePassBase::ChooseSchedulePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (stages == 1)
      return;
    if (failed(check(module)))
      return signalPassFailure();
    std::string problem;
    std::optional<pipe::Positions> layout = stages::layoutOf(schedule, stages, chunks, problem);
    if (layout && layout->count() > kMaxPositions)
      problem = std::to_string(stages) + " stages of " + std::to_string(layout->chunks) +
                " chunks are " + std::to_string(layout->count()) + " chunks, and at most " +
                std::to_string(kMaxPositions) + " are possible";
    std::optional<stages::Schedule> table;
    std::optional<int64_t> microBatches = countMicroBatches(module);
    if (problem.empty() && microBatches) {
      table = stages::findSchedule(schedule, *layout, static_cast<int>(*microBatches), problem);
      if (table)
        problem = stages::findProblem(*table, schedule);
    }
    if (!problem.empty()) {
      module.emitError() << "schedule: " << problem;
      return signalPassFailure();
    }
    note(module, *layout);
    if (!table)
      return;
    for (const std::vector<stages::Slot> &each : table->slots)
      slots += each.size();
    module->setAttr(train::TrainDialect::kSchedule,
                    stages::toAttribute(*table, schedule, &getContext()));
  }

private:
  LogicalResult check(ModuleOp module) {
    if (stages < 1 || stages > pipe::PipeDialect::kMaxStages)
      return module.emitError() << "stages: " << stages.getValue() << ", expected 1 to "
                                << pipe::PipeDialect::kMaxStages;
    if (module->hasAttr(pipe::PipeDialect::kStages) || !module.getOps<ModuleOp>().empty())
      return module.emitError() << "stages: the program has some already";
    WalkResult result = module.walk([](Operation *op) {
      auto loop = dyn_cast<AccumulateOp>(op);
      return provenance::isBackward(op) || (loop && loop.hasBackward()) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return module.emitError()
             << "stages: the program is differentiated already, and what crosses "
                "stages backward follows from what crosses them forward";
    return success();
  }

  /// Returns the number of micro-batches of a training step; none for a program that does not train.
  static std::optional<int64_t> countMicroBatches(ModuleOp module) {
    std::optional<int64_t> count;
    if (auto step = train::lookup<func::FuncOp>(module, train::EntryPoint::TrainStep))
      step.walk([&](AccumulateOp loop) { count = loop.getCount(); });
    return count;
  }

  /// Notes how positions map to stages.
  static void note(ModuleOp module, const pipe::Positions &layout) {
    Builder b(module);
    module->setAttr(pipe::PipeDialect::kStages, b.getI64IntegerAttr(layout.stages));
    if (layout.chunks > 1)
      module->setAttr(pipe::PipeDialect::kChunks, b.getI64IntegerAttr(layout.chunks));
    if (layout.isWave)
      module->setAttr(pipe::PipeDialect::kWave, b.getUnitAttr());
  }
};

} // namespace
