//===- NoteCosts.cpp - note-costs ---------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Interfaces/Holders.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "partita/Analysis/Flops.h"
#include "partita/Phases/Passes.h"
#include "partita/Phases/Phases.h"
#include "partita/Phases/Provenance.h"
#include "partita/Stages/ParseCuts.h"
#include "partita/Stages/Spans.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"

namespace partita {
#define GEN_PASS_DEF_NOTECOSTSPASS
#include "partita/Phases/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using stages::Schedule;
using stages::Slot;
using stages::Span;
using train::PassKind;

namespace {

/// The first layer of each stage of a copy.
using Firsts = SmallVector<int64_t>;

/// Returns cuts that together make a stage of each span of one and of two layers. Where they would
/// have more stages than a program may, some stages are longer.
std::vector<Firsts> cutsInto(int64_t layers) {
  constexpr size_t most = kMaxPositions - 1; // besides the layers before
  std::vector<Firsts> all;
  for (auto [size, begin] : {std::pair<int64_t, int64_t>{1, 0}, {2, 0}, {2, 1}}) {
    Firsts firsts;
    for (int64_t first = begin; first < layers; first += size)
      firsts.push_back(first);
    for (ArrayRef<int64_t> rest = firsts; !rest.empty();) {
      ArrayRef<int64_t> part = rest.take_front(most);
      Firsts &own = all.emplace_back();
      if (part.front() != 0)
        own.push_back(0);
      own.append(part.begin(), part.end());
      // The last stage of a part has all layers that follow, so the next part has it again.
      rest = rest.size() > most ? rest.drop_front(most - 1) : ArrayRef<int64_t>();
    }
  }
  llvm::erase_if(all, [](const Firsts &firsts) { return firsts.size() < 2; });
  return all;
}

/// Returns a schedule for a copy, in which stages run their passes one after another. `joins`: the
/// last stage joins them.
Schedule scheduleOf(int stages, int microBatches, bool joins, bool splits) {
  Schedule schedule;
  schedule.stages = stages;
  schedule.microBatches = microBatches;
  schedule.splitsBackward = splits;
  std::vector<Slot> slots;
  auto add = [&](PassKind kind, int microBatch) { slots.push_back({{kind}, microBatch}); };
  if (joins) {
    for (int i : llvm::seq(microBatches))
      for (const train::PassKindRow &row : schedule.kinds())
        add(row.kind, i);
  } else {
    for (const train::PassKindRow &row : schedule.kinds())
      for (int i : llvm::seq(microBatches))
        add(row.kind, i);
  }
  schedule.slots.assign(stages, slots);
  return schedule;
}

struct NoteCosts : partita::impl::NoteCostsPassBase<NoteCosts> {
  using NoteCostsPassBase::NoteCostsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->hasAttr(pipe::PipeDialect::kStages) || assign != "auto")
      return;
    for (auto entry : {train::EntryPoint::Forward, train::EntryPoint::TrainStep})
      if (auto found = train::lookup<func::FuncOp>(module, entry))
        function = found;
    if (auto noted = module->getAttrOfType<train::ScheduleAttr>(train::TrainDialect::kSchedule))
      schedule = stages::fromAttribute(noted, *pipe::positionsOf(module));
    layers = countLayers(notedWork(module));
    if (!function || layers < pipe::positionsOf(module)->count())
      return; // pipe-place says so
    // Warnings come again from the program itself. So would errors; it does not get there.
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    std::vector<Span> spans;
    for (const Firsts &firsts : cutsInto(layers))
      for (bool splits : {false, true})
        if ((!splits || (schedule && schedule->splitsBackward)) &&
            failed(measure(firsts, splits, spans)))
          return signalPassFailure();
    llvm::sort(spans, [](const Span &a, const Span &b) {
      return std::tie(a.splits, a.first, a.last) < std::tie(b.splits, b.first, b.last);
    });
    noted += spans.size();
    stages::noteSpans(module, spans);
  }

private:
  /// Returns the program of the function alone, with a layout of so many stages.
  OwningOpRef<ModuleOp> copyFor(int64_t count, bool splits) {
    ModuleOp module = getOperation();
    OwningOpRef<ModuleOp> copy = ModuleOp::create(module.getLoc());
    (*copy)->setDiscardableAttrs(module->getDiscardableAttrDictionary());
    for (StringRef name :
         {pipe::PipeDialect::kChunks, pipe::PipeDialect::kWave, train::TrainDialect::kSchedule})
      (*copy)->removeDiscardableAttr(name);
    OpBuilder builder = OpBuilder::atBlockEnd(copy->getBody());
    (*copy)->setAttr(pipe::PipeDialect::kStages, builder.getI64IntegerAttr(count));
    for (Operation &op : *module.getBody())
      if (!isa<func::FuncOp>(op) || &op == function)
        builder.clone(op);
    if (!schedule)
      return copy;
    Schedule own = scheduleOf(static_cast<int>(count), schedule->microBatches,
                              stages::lastJoins(*schedule), splits);
    (*copy)->setAttr(train::TrainDialect::kSchedule,
                     stages::toAttribute(own, "note-costs", &getContext()));
    return copy;
  }

  LogicalResult measure(const Firsts &firsts, bool splits, std::vector<Span> &spans) {
    OwningOpRef<ModuleOp> copy = copyFor(static_cast<int64_t>(firsts.size()), splits);
    if (failed(run(*copy, firsts)))
      return failure();
    for (ModuleOp stage : pipe::stagesOf(*copy)) {
      int64_t number = *pipe::stageOf(stage), first = firsts[number];
      int64_t last =
          (number + 1 < static_cast<int64_t>(firsts.size()) ? firsts[number + 1] : layers) - 1;
      bool isKnown = llvm::any_of(spans, [&](const Span &span) {
        return span.first == first && span.last == last && span.splits == splits;
      });
      if (last - first < 2 && !isKnown)
        spans.push_back({first, last, costsOf(stage), splits});
    }
    return success();
  }

  LogicalResult run(ModuleOp copy, ArrayRef<int64_t> firsts) {
    std::string passes = "pipe-place{axis=" + std::to_string(axis) +
                         " assign=" + stages::cutsText(firsts) + "}," +
                         (toCut.empty() ? textOf("partition", "cut") : toCut) + ",builtin.module(" +
                         (ofStages.empty() ? textOf("schedule", "overlap") : ofStages) + ")";
    PassManager manager(copy.getContext(), ModuleOp::getOperationName());
    manager.enableVerifier(false);
    carryProvenance(manager);
    std::string problem;
    llvm::raw_string_ostream os(problem);
    if (failed(parsePassPipeline(passes, manager, os)))
      return copy.emitError() << "note-costs: " << problem;
    return manager.run(copy);
  }

  /// Returns the passes of these phases with the initial plan.
  static std::string textOf(StringRef first, StringRef last) {
    return llvm::join(
        llvm::map_range(llvm::seq(phaseIndex(first), phaseIndex(last) + 1),
                        [](int index) { return passesText(phases()[index], Plan()); }),
        ",");
  }

  static stages::SlotCosts costsOf(ModuleOp stage) {
    stages::SlotCosts costs{};
    auto ofKind = [&](PassKind kind) -> double & { return costs.each[static_cast<size_t>(kind)]; };
    if (auto noted = stage->getAttrOfType<train::CostsAttr>(train::TrainDialect::kCosts)) {
      for (auto each : noted.getPasses().getAsRange<train::PassCostAttr>())
        ofKind(each.getPass().getKind()) += static_cast<double>(each.getCost());
    } else if (auto cost = stage->getAttrOfType<IntegerAttr>(train::TrainDialect::kForwardCost)) {
      ofKind(PassKind::Forward) = static_cast<double>(cost.getInt());
    }
    return costs;
  }

  func::FuncOp function;
  std::optional<Schedule> schedule; ///< none without a training step
  int64_t layers = 0;
};

} // namespace
