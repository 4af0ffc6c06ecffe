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
#include "partita/Analysis/AlikeLayers.h"
#include "partita/Analysis/Flops.h"
#include "partita/Phases/Passes.h"
#include "partita/Phases/Phases.h"
#include "partita/Phases/Provenance.h"
#include "partita/Stages/ParseCuts.h"
#include "partita/Stages/Spans.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

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

/// Layers to measure as one stage.
struct Range {
  int64_t first = 0, last = 0;
  bool operator==(const Range &other) const { return first == other.first && last == other.last; }
};

/// Returns, for each combination of kinds of which there are one or two layers in succession, one
/// place: the first of a layer and the last of two, so that both fit into one copy.
std::vector<Range> rangesToMeasure(ArrayRef<int64_t> kinds) {
  std::vector<Range> ranges;
  auto layers = static_cast<int64_t>(kinds.size());
  for (int64_t i : llvm::seq(layers)) {
    if (i == 0 || kinds[i] != kinds[i - 1])
      ranges.push_back({i, i});
    if (i + 1 < layers && (i + 2 == layers || kinds[i] != kinds[i + 1] || kinds[i] != kinds[i + 2]))
      ranges.push_back({i, i + 1});
  }
  llvm::sort(ranges, [](const Range &a, const Range &b) {
    return std::tie(a.last, a.first) < std::tie(b.last, b.first);
  });
  return ranges;
}

/// How a copy is cut.
struct Cuts {
  SmallVector<int64_t> firsts; ///< the first layer of each stage
  std::vector<Range> measured; ///< the others fill the gaps

  bool measures(int64_t first, int64_t last) const {
    return llvm::is_contained(measured, Range{first, last});
  }
};

/// Returns cuts that together measure each range, as many as possible at a time: the one that ends
/// first, then the next that begins behind it.
std::vector<Cuts> cutsFor(std::vector<Range> ranges, int64_t layers) {
  std::vector<Cuts> all;
  while (!ranges.empty()) {
    Cuts cuts;
    int64_t end = 0;
    std::vector<Range> later;
    for (const Range &range : ranges) {
      // A range takes up to three stages: a gap before, itself, and what follows the last one.
      if (range.first < end || static_cast<int64_t>(cuts.firsts.size()) + 3 > kMaxPositions) {
        later.push_back(range);
        continue;
      }
      if (range.first > end)
        cuts.firsts.push_back(end);
      cuts.firsts.push_back(range.first);
      cuts.measured.push_back(range);
      end = range.last + 1;
    }
    if (end < layers)
      cuts.firsts.push_back(end);
    ranges = std::move(later);
    if (cuts.firsts.size() > 1) // else the range is the whole model, which is no stage
      all.push_back(std::move(cuts));
  }
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
    std::vector<int64_t> kinds = kindsOfLayers();
    std::vector<Span> spans;
    for (bool splits : {false, true})
      if (!splits || (schedule && schedule->splitsBackward))
        if (failed(measure(kinds, splits, spans)))
          return signalPassFailure();
    noted += spans.size();
    stages::noteSpans(module, spans);
  }

private:
  /// Costs of ranges by the kinds of their layers.
  using Costs = std::map<std::vector<int64_t>, stages::SlotCosts>;

  static std::vector<int64_t> kindsOf(Range range, ArrayRef<int64_t> kinds) {
    return kinds.slice(range.first, range.last - range.first + 1).vec();
  }

  /// Returns the kinds of the layers: each its own if an option may treat two that are alike
  /// differently.
  std::vector<int64_t> kindsOfLayers() {
    if (shard.empty() && keep.empty() && budget == 0)
      return analysis::kindsOfLayers(function, layers);
    auto each = llvm::seq(layers);
    return std::vector<int64_t>(each.begin(), each.end());
  }

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

  /// Measures each combination of kinds once, and adds the spans of all layers.
  LogicalResult measure(ArrayRef<int64_t> kinds, bool splits, std::vector<Span> &spans) {
    Costs costs;
    for (const Cuts &cuts : cutsFor(rangesToMeasure(kinds), layers))
      if (failed(measure(cuts, kinds, splits, costs)))
        return failure();
    for (int64_t first : llvm::seq(layers))
      for (int64_t last = first; last < std::min(first + 2, layers); ++last)
        if (auto found = costs.find(kindsOf({first, last}, kinds)); found != costs.end())
          spans.push_back({first, last, found->second, splits});
    return success();
  }

  LogicalResult measure(const Cuts &cuts, ArrayRef<int64_t> kinds, bool splits, Costs &costs) {
    OwningOpRef<ModuleOp> copy = copyFor(static_cast<int64_t>(cuts.firsts.size()), splits);
    std::string toStages = "pipe-place{axis=" + std::to_string(axis) +
                           " assign=" + stages::cutsText(cuts.firsts) + "}," +
                           (toCut.empty() ? textOf("partition", "cut") : toCut);
    if (failed(run(*copy, toStages)))
      return failure();
    SmallVector<std::pair<ModuleOp, Range>> stages;
    for (ModuleOp stage : pipe::stagesOf(*copy)) {
      int64_t number = *pipe::stageOf(stage), first = cuts.firsts[number];
      bool isLast = number + 1 == static_cast<int64_t>(cuts.firsts.size());
      int64_t last = (isLast ? layers : cuts.firsts[number + 1]) - 1;
      if (cuts.measures(first, last))
        stages.push_back({stage, {first, last}});
      else
        stage.erase(); // the passes below take each stage alone
    }
    if (failed(run(*copy, "builtin.module(" +
                              (ofStages.empty() ? textOf("schedule", "overlap") : ofStages) + ")")))
      return failure();
    measured += stages.size();
    for (auto &[stage, range] : stages)
      costs[kindsOf(range, kinds)] = costsOf(stage);
    return success();
  }

  static LogicalResult run(ModuleOp copy, const std::string &passes) {
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
