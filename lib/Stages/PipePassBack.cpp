//===- PipePassBack.cpp - pipe-pass-back --------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "partita/Analysis/StageMap.h"
#include "partita/Stages/Passes.h"
#include "partita/Stages/Schedule.h"
#include "llvm/ADT/SetVector.h"

namespace partita {
#define GEN_PASS_DEF_PIPEPASSBACKPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;

namespace {

/// Returns true if stages that wait for each other at the end of a step idle longer than stages that
/// each begin the next step as soon as they have ended this one, at equal costs.
bool losesByWaiting(const stages::Schedule &schedule) {
  stages::ScheduleReport report = stages::report(schedule, stages::equalCosts());
  return report.idleInside < report.time - report.work.front();
}

/// Passes back the sums of one loop.
class PassBack {
public:
  PassBack(func::FuncOp function, AccumulateOp loop, const StageMap &map)
      : function(function), loop(loop), map(map), layout(map.layout()) {}

  /// Collects the loop's sums on which a value depends that not all stages have. Returns false if
  /// it depends on something else that they do not have.
  bool collect(Value value) {
    if (map.of(value).isEverywhere())
      return true;
    Operation *definer = value.getDefiningOp();
    if (definer == loop) {
      unsigned sum = cast<OpResult>(value).getResultNumber();
      return canPass(sum) && (sums.insert(sum), true);
    }
    return definer && definer->getBlock() == loop->getBlock() && isMemoryEffectFree(definer) &&
           !isa<train::ReadOp>(definer) &&
           llvm::all_of(definer->getOperands(), [&](Value operand) { return collect(operand); });
  }

  /// Returns the number of sums.
  size_t run() {
    if (sums.empty())
      return 0;
    SmallVector<Copies> all;
    for (unsigned sum : sums)
      all.push_back(pass(sum));
    extend(all);
    return sums.size();
  }

private:
  /// A sum, and what the positions after its own add up, by position.
  struct Copies {
    unsigned sum;
    SmallVector<int64_t> positions;
    SmallVector<Value> parts; ///< of the backward region, for all positions but the first
  };

  /// Returns true for a sum of the forward pass that one position has, with all stages on the way
  /// back to the first position.
  bool canPass(unsigned sum) {
    OpOperand &part = loop.getPart(sum);
    Holders holders = map.of(part.get());
    return part.getOwner()->getParentRegion() == &loop.getBody() && holders.isOne() &&
           !holders.partial && !wayFrom(holders.first()).empty();
  }

  /// Returns the positions from this one back until all stages have been passed; empty if the first
  /// position is reached before.
  SmallVector<int64_t> wayFrom(int64_t position) const {
    SmallVector<int64_t> way{position};
    PositionSet passed;
    passed.set(layout.stageOf(position));
    while (static_cast<int64_t>(passed.count()) < layout.stages) {
      if (way.back() == 0)
        return {};
      way.push_back(way.back() - 1);
      passed.set(layout.stageOf(way.back()));
    }
    return way;
  }

  /// Returns a number that no channel between the stages of these positions has.
  int64_t freeNumber(int64_t from, int64_t to) {
    auto ends = std::minmax({layout.stageOf(from), layout.stageOf(to)});
    int64_t number = 0;
    function.walk([&](pipe::MoveOp move) {
      pipe::ChannelAttr channel = move.getChannel();
      if (ends == std::minmax({layout.stageOf(channel.getFrom()), layout.stageOf(channel.getTo())}))
        number = std::max(number, channel.getNumber() + 1);
    });
    return number;
  }

  Copies pass(unsigned sum) {
    Value value = loop.getPart(sum).get();
    Copies copies{sum, wayFrom(map.of(value).first()), {}};
    Value at = loop.save(value);
    OpBuilder builder = OpBuilder::atBlockBegin(&loop.getBackward().front());
    for (auto [from, to] : llvm::zip(copies.positions, ArrayRef(copies.positions).drop_front())) {
      auto channel = pipe::ChannelAttr::get(builder.getContext(), from, to, freeNumber(from, to));
      at = pipe::MoveOp::create(builder, value.getLoc(), value.getType(), at, channel);
      copies.parts.push_back(at);
    }
    return copies;
  }

  /// Rebuilds the loop with a sum for each copy.
  void extend(ArrayRef<Copies> all) {
    SmallVector<Type> types(loop.getSums().getTypes());
    auto yield = cast<train::YieldOp>(loop.getBackward().front().getTerminator());
    for (const Copies &copies : all)
      for (Value part : copies.parts) {
        types.push_back(loop.getSums()[copies.sum].getType());
        yield.getValuesMutable().append(part);
      }
    OpBuilder builder(loop);
    auto made = AccumulateOp::create(builder, loop.getLoc(), types, loop.getBatches(),
                                     train::PassName{train::PassKind::Backward});
    made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    for (auto [before, after] : llvm::zip(loop->getRegions(), made->getRegions()))
      after.takeBody(before);
    for (auto [before, after] : llvm::zip(loop.getSums(), made.getSums()))
      before.replaceAllUsesWith(after);
    builder.setInsertionPointAfter(made);
    unsigned next = loop.getSums().size();
    for (const Copies &copies : all) {
      SmallVector<Value> values{made.getSums()[copies.sum]};
      for (size_t i = 0; i < copies.parts.size(); ++i)
        values.push_back(made.getSums()[next++]);
      Location loc = loop.getLoc();
      auto joined = pipe::CopiesOp::create(builder, loc, values, copies.positions);
      values.front().replaceAllUsesExcept(joined.getResult(), joined);
    }
    loop.erase();
  }

  func::FuncOp function;
  AccumulateOp loop;
  const StageMap &map;
  pipe::Positions layout;
  llvm::SetVector<unsigned> sums;
};

struct PipePassBack : partita::impl::PipePassBackPassBase<PipePassBack> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto schedule = module->getAttrOfType<train::ScheduleAttr>(train::TrainDialect::kSchedule);
    auto function = train::lookup<func::FuncOp>(module, train::EntryPoint::TrainStep);
    if (!module->hasAttr(pipe::PipeDialect::kStages) || !schedule || !function)
      return;
    FailureOr<stages::Schedule> table = stages::scheduleOf(module, *pipe::positionsOf(module));
    if (failed(table))
      return signalPassFailure();
    if (!losesByWaiting(*table))
      return;
    AccumulateOp loop;
    bool waitsAnyway = false;
    function.walk([&](Operation *op) {
      if (auto each = dyn_cast<AccumulateOp>(op); each && each.isUnscheduled())
        loop = each;
      if (auto sum = dyn_cast<pipe::SumOp>(op)) // `pipe-cut` removes those of one stage
        waitsAnyway |= sum.getRankCount() > 1 && !op->getParentOfType<AccumulateOp>();
    });
    if (!loop || waitsAnyway)
      return;
    FailureOr<StageMap> map = StageMap::of(function);
    if (failed(map))
      return signalPassFailure();
    PassBack back(function, loop, *map);
    Operation *end = function.getBody().front().getTerminator();
    if (llvm::all_of(end->getOperands(), [&](Value result) { return back.collect(result); }))
      passed += back.run();
  }
};

} // namespace
