//===- NoteCosts.cpp - note-costs ---------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "lib/Stages/Kinds.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "partita/Analysis/Flops.h"
#include "partita/Analysis/Work.h"
#include "partita/Phases/Passes.h"
#include "partita/Phases/Phases.h"
#include "partita/Phases/Provenance.h"
#include "partita/Stages/Schedule.h"
#include <limits>
#include <map>

namespace partita {
#define GEN_PASS_DEF_NOTECOSTSPASS
#include "partita/Phases/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;
using train::LayerAttr;
using train::PassKind;

namespace {

/// Returns the program of one function, without stages.
OwningOpRef<ModuleOp> copyOf(ModuleOp module, func::FuncOp function) {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(module.getLoc());
  (*copy)->setDiscardableAttrs(module->getDiscardableAttrDictionary());
  for (StringRef name : {pipe::PipeDialect::kStages, pipe::PipeDialect::kChunks,
                         pipe::PipeDialect::kWave, train::TrainDialect::kSchedule})
    (*copy)->removeDiscardableAttr(name);
  OpBuilder builder = OpBuilder::atBlockEnd(copy->getBody());
  for (Operation &op : *module.getBody())
    if (!isa<func::FuncOp>(op) || &op == function)
      builder.clone(op);
  return copy;
}

/// Marks the ops of the copy whose cost is another place's than that of their `train.layer`. Such a
/// mark is below all places, so that passes take it for no layer.
class Places {
public:
  using Range = std::pair<int64_t, int64_t>; ///< first and last layer

  explicit Places(func::FuncOp function) : block(forwardBlock(function)), kinds(function, block) {
    for (Operation &op : *block)
      if (LayerAttr layer = LayerAttr::of(&op))
        layers = std::max(layers, layer.getCount());
    if (layers == 0)
      return;
    for (Operation &op : *block)
      placeActivation(op);
    for (Operation &op : llvm::reverse(*block))
      placeShared(op);
  }

  /// Returns the layers that a mark stands for: the one at which `pipe-place` puts the op, or all
  /// that share it. None for a place.
  std::optional<Range> layersOf(int64_t number) const {
    if (number > kFirstMark)
      return std::nullopt;
    return ranges[kFirstMark - number];
  }
  int64_t markOf(Range range) {
    auto found = llvm::find(ranges, range);
    if (found == ranges.end())
      found = ranges.insert(found, range);
    return kFirstMark - (found - ranges.begin());
  }

private:
  static constexpr int64_t kFirstMark = -16;

  static int64_t numberOf(Operation *op) {
    LayerAttr layer = LayerAttr::of(op);
    return layer ? layer.getNumber() : LayerAttr::kBefore;
  }

  /// Returns the layers on whose stages a user is.
  Range rangeOf(Operation *user) const {
    int64_t number = numberOf(user);
    if (std::optional<Range> marked = layersOf(number))
      return *marked;
    int64_t layer = number == LayerAttr::kAfter ? layers - 1 : std::max<int64_t>(number, 0);
    return {layer, layer};
  }

  void set(Operation &op, Range range) {
    auto layer = LayerAttr::get(op.getContext(), markOf(range), layers);
    op.setAttr(provenance::kLayer, layer); // for the next pass
    provenance::set(&op, provenance::kLayer, layer);
  }

  /// An op before the layers that reads one (an encoder's last norm) is at that layer's position.
  void placeActivation(Operation &op) {
    if (!kinds.isActivation(&op) || numberOf(&op) != LayerAttr::kBefore)
      return;
    std::optional<int64_t> last;
    for (Value operand : op.getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && kinds.isActivation(maker))
        if (numberOf(maker) != LayerAttr::kBefore)
          last = std::max(last.value_or(0), rangeOf(maker).second);
    if (last)
      set(op, {*last, *last});
  }

  /// An op that is no activation is on all stages that need it.
  void placeShared(Operation &op) {
    if (kinds.isActivation(&op) || op.hasTrait<OpTrait::IsTerminator>())
      return;
    std::optional<Range> needs;
    for (Operation *user : op.getUsers())
      if (user->getBlock() == block && !user->hasTrait<OpTrait::IsTerminator>()) {
        Range own = rangeOf(user);
        needs = Range{std::min(needs.value_or(own).first, own.first),
                      std::max(needs.value_or(own).second, own.second)};
      }
    if (needs)
      set(op, *needs);
  }

  Block *block;
  Kinds kinds;
  int64_t layers = 0;
  SmallVector<Range> ranges;
};

/// Orders the passes as the last stage does if it may join them, otherwise apart.
void order(ModuleOp module, bool joins) {
  module.walk([&](AccumulateOp loop) {
    if (!loop.isUnscheduled())
      return;
    int64_t count = loop.getCount();
    std::vector<train::Slot> slots;
    for (int64_t i = 0; i < 2 * count; ++i)
      slots.push_back({{(joins ? i % 2 : i / count) == 0 ? PassKind::Forward : PassKind::Backward},
                       joins ? i / 2 : i % count});
    loop.setOrderAttr(train::OrderAttr::get(loop.getContext(), ArrayRef<train::Slot>(slots)));
    if (joins)
      loop->setAttr(pipe::PipeDialect::kMayJoin, UnitAttr::get(loop.getContext()));
    for (Region &region : loop.getLater())
      provenance::markBackward(region.front());
  });
}

/// Adds up what the ops of a micro-batch cost.
class Adder {
public:
  explicit Adder(Places &places) : places(places) {}

  void add(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>()) {
      bool loops = false;
      function.walk([&](AccumulateOp loop) {
        loops = true;
        for (Region &region : loop->getRegions())
          for (Operation &op : region.front())
            add(op);
      });
      if (!loops)
        for (Operation &op : function.getBody().front())
          add(op);
    }
  }

  std::map<int64_t, analysis::PassCosts> costs; ///< by place

private:
  static std::optional<int64_t> placeOf(Operation *op) {
    LayerAttr layer = LayerAttr::of(op);
    return layer && layer.getNumber() != LayerAttr::kOnce ? std::optional(layer.getNumber())
                                                          : std::nullopt;
  }

  void add(Operation &op) {
    std::optional<int64_t> place = placeOf(&op);
    if (!place)
      return;
    analysis::PassCosts cost = analysis::passCostsOf(&op);
    if (cost.backward > 0 && isSum(&op))
      return addSum(op, *place, cost.backward);
    costs[*place].forward += cost.forward;
    costs[*place].backward += cost.backward;
  }

  /// Returns true if the op adds up cotangents of one value, which the layers that read it make.
  static bool isSum(Operation *op) {
    if (auto fusion = dyn_cast<tx::FusionOp>(op))
      return fusion->getNumResults() == 1 &&
             llvm::all_of(fusion.getBody().front().without_terminator(),
                          llvm::IsaPred<tx::AddOp, tx::CastOp>);
    return isa<tx::AddOp>(op);
  }

  /// Each stage adds up the cotangents that its layers make. Reading one counts at its layer, writing
  /// the sum at the value's; each stage with readers beyond that layer writes a sum of its own.
  void addSum(Operation &op, int64_t place, int64_t cost) {
    int64_t share = cost / static_cast<int64_t>(op.getNumOperands() + 1);
    std::optional<Places::Range> readers;
    for (Value operand : op.getOperands()) {
      Operation *maker = operand.getDefiningOp();
      std::optional<int64_t> of =
          maker && provenance::isBackward(maker) ? placeOf(maker) : std::nullopt;
      costs[of.value_or(place)].backward += share;
      cost -= share;
      if (!of || *of <= lastLayerOf(place))
        continue;
      Places::Range known = readers.value_or(Places::Range{*of, *of});
      readers = Places::Range{std::min(known.first, *of), std::max(known.second, *of)};
    }
    costs[readers ? places.markOf(*readers) : place].backward += cost;
  }

  /// Returns the last layer that computes what is at a place.
  int64_t lastLayerOf(int64_t place) const {
    if (place == LayerAttr::kAfter)
      return std::numeric_limits<int64_t>::max();
    std::optional<Places::Range> marked = places.layersOf(place);
    return marked ? marked->second : std::max<int64_t>(place, 0);
  }

  Places &places;
};

struct NoteCosts : partita::impl::NoteCostsPassBase<NoteCosts> {
  using NoteCostsPassBase::NoteCostsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::vector<LayerWork> work = notedWork(module);
    if (!module->hasAttr(pipe::PipeDialect::kStages) || work.empty())
      return;
    auto function = train::lookup<func::FuncOp>(module, train::EntryPoint::TrainStep);
    if (!function)
      function = train::lookup<func::FuncOp>(module, train::EntryPoint::Forward);
    if (!function)
      return;
    // Warnings come again from the program itself. So would errors; it does not get there.
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    OwningOpRef<ModuleOp> copy = copyOf(module, function);
    Places places(*copy->getOps<func::FuncOp>().begin());
    if (failed(run(*copy, toGradients, {"partition", "differentiate"})))
      return signalPassFailure();
    order(*copy, lastJoins(module));
    if (failed(run(*copy, toKernels, {"schedule", "fuse"})))
      return signalPassFailure();
    Adder adder(places);
    adder.add(*copy);
    note(module, work, adder.costs, places);
  }

private:
  static bool lastJoins(ModuleOp module) {
    auto schedule = module->getAttrOfType<train::ScheduleAttr>(train::TrainDialect::kSchedule);
    return schedule &&
           stages::lastMayJoin(stages::fromAttribute(schedule, *pipe::positionsOf(module)));
  }

  /// Runs these passes or, without any, those of the phases with the initial plan.
  static LogicalResult run(ModuleOp module, std::string passes, ArrayRef<StringRef> names) {
    for (StringRef name : passes.empty() ? names : ArrayRef<StringRef>())
      passes += (passes.empty() ? "" : ",") + passesText(phases()[phaseIndex(name)], Plan());
    PassManager manager(module.getContext(), ModuleOp::getOperationName());
    manager.enableVerifier(false);
    carryProvenance(manager);
    std::string problem;
    llvm::raw_string_ostream os(problem);
    if (failed(parsePassPipeline(passes, manager, os)))
      return module.emitError() << "note-costs: " << problem;
    return manager.run(module);
  }

  void note(ModuleOp module, std::vector<LayerWork> work,
            const std::map<int64_t, analysis::PassCosts> &costs, const Places &places) {
    std::vector<SharedWork> shared;
    auto rowOf = [&](int64_t place) -> LayerWork & {
      for (LayerWork &each : work)
        if (each.place == place)
          return each;
      return work.emplace_back(LayerWork{place, {}, 0, 0, 0, 0});
    };
    for (const auto &[place, cost] : costs) {
      if (cost.forward + cost.backward == 0)
        continue;
      std::optional<Places::Range> layers = places.layersOf(place);
      if (layers && layers->first < layers->second) {
        shared.push_back({layers->first, layers->second, cost.forward, cost.backward});
        continue;
      }
      LayerWork &row = rowOf(layers ? layers->first : place);
      row.forwardCost += cost.forward;
      row.backwardCost += cost.backward;
      ++noted;
    }
    noteWork(module, work);
    noteSharedWork(module, shared);
  }
};

} // namespace
