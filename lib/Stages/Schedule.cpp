//===- Schedule.cpp - what follows from a schedule's slots ---------------------------------------===//

#include "partita/Stages/Schedule.h"
#include "dialects/Pipe/Pipe.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace partita::stages;
namespace train = partita::train;

std::pair<int, int> Schedule::placeOf(int position) const {
  pipe::Positions positions = layout();
  return {static_cast<int>(positions.stageOf(position)),
          static_cast<int>(positions.chunkOf(position))};
}

void Schedule::deriveFromSlots() {
  microBatches = 1;
  splitsBackward = false;
  for (const std::vector<Slot> &ofStage : slots)
    for (const Slot &slot : ofStage) {
      microBatches = std::max(microBatches, static_cast<int>(slot.microBatch) + 1);
      splitsBackward |= slot.kind == PassKind::Weights;
    }
}

train::ScheduleAttr partita::stages::toAttribute(const Schedule &schedule, llvm::StringRef name,
                                                 mlir::MLIRContext *context) {
  llvm::SmallVector<mlir::Attribute> orders;
  for (const std::vector<Slot> &slots : schedule.slots)
    orders.push_back(train::OrderAttr::get(context, llvm::ArrayRef<Slot>(slots)));
  return train::ScheduleAttr::get(context, name, mlir::ArrayAttr::get(context, orders));
}

Schedule partita::stages::fromAttribute(train::ScheduleAttr attribute,
                                        const pipe::Positions &layout) {
  Schedule schedule{static_cast<int>(layout.stages),
                    1,
                    static_cast<int>(layout.chunks),
                    layout.isWave,
                    false,
                    {}};
  for (auto order : attribute.getOrders().getAsRange<train::OrderAttr>())
    schedule.slots.emplace_back(order.getSlots());
  schedule.deriveFromSlots();
  return schedule;
}

static std::string text(const Schedule &schedule, const Slot &slot) {
  return partita::train::stringifyPassKind(slot.kind).str() + " of micro-batch " +
         std::to_string(slot.microBatch) +
         (schedule.chunks > 1 || slot.chunk != 0 ? ", chunk " + std::to_string(slot.chunk) : "");
}

static std::string placeText(const Schedule &schedule, int stage, size_t number) {
  return "stage " + std::to_string(stage) + ", slot " + std::to_string(number) + " (" +
         text(schedule, schedule.slots[stage][number]) + ")";
}

/// Returns the position `distance` away in the direction of the slot's pass: -1 is the source of
/// its input, 1 the target of its result. None beyond the ends, and none for a pass that sends
/// nothing.
static std::optional<int> neighborOf(const Schedule &schedule, int stage, const Slot &slot,
                                     int distance) {
  int direction = train::rowOf(slot.kind).direction;
  int position = schedule.positionOf(stage, slot.chunk) + direction * distance;
  bool exists = direction != 0 && position >= 0 && position < schedule.positions();
  return exists ? std::optional(position) : std::nullopt;
}
static std::optional<int> sourceOf(const Schedule &schedule, int stage, const Slot &slot) {
  return neighborOf(schedule, stage, slot, -1);
}
static std::optional<int> targetOf(const Schedule &schedule, int stage, const Slot &slot) {
  return neighborOf(schedule, stage, slot, 1);
}

namespace {

/// A pass of a micro-batch at a position.
using Pass = std::tuple<PassKind, int, int>; // kind, position, micro-batch

/// Runs all stages side by side, each slot as soon as its dependencies are done.
class Execution {
public:
  Execution(const Schedule &schedule, llvm::ArrayRef<std::vector<SlotCosts>> costs)
      : schedule(schedule), costs(costs), next(schedule.stages, 0), now(schedule.stages, 0),
        begins(schedule.stages) {}
  void run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (int stage = 0; stage < schedule.stages; ++stage)
        while (next[stage] < schedule.slots[stage].size() && step(stage))
          moves = true;
    }
  }

  /// Returns the passes of the same micro-batch that this slot waits for.
  std::vector<Pass> needs(int stage, const Slot &slot) const {
    int position = schedule.positionOf(stage, slot.chunk), micro = slot.microBatch;
    std::vector<Pass> passes;
    if (const train::PassKindRow *before = train::rowBefore(slot.kind))
      passes.push_back({before->kind, position, micro});
    if (std::optional<int> source = sourceOf(schedule, stage, slot))
      passes.push_back({slot.kind, *source, micro});
    return passes;
  }

  double costOf(int stage, const Slot &slot) const {
    return costs[stage][slot.chunk].of(slot.kind);
  }

  const Schedule &schedule;
  llvm::ArrayRef<std::vector<SlotCosts>> costs; ///< per stage and chunk
  std::map<Pass, double> ends;
  std::vector<size_t> next;                ///< per stage: its next slot
  std::vector<double> now;                 ///< per stage: the end of its last slot
  std::vector<std::vector<double>> begins; ///< per stage: the starts of its slots

private:
  bool step(int stage) {
    const Slot &slot = schedule.slots[stage][next[stage]];
    double begin = now[stage];
    for (const Pass &pass : needs(stage, slot)) {
      auto end = ends.find(pass);
      if (end == ends.end())
        return false;
      begin = std::max(begin, end->second);
    }
    begins[stage].push_back(begin);
    now[stage] = begin + costOf(stage, slot);
    ends[{slot.kind, schedule.positionOf(stage, slot.chunk), slot.microBatch}] = now[stage];
    ++next[stage];
    return true;
  }
};

} // namespace

double ScheduleReport::bubbleShare() const {
  double slowest = work.empty() ? 0 : *llvm::max_element(work);
  return slowest > 0 ? (time - slowest) / slowest : 0;
}

ScheduleReport partita::stages::report(const Schedule &schedule, const SlotCosts &costs) {
  std::vector<std::vector<SlotCosts>> all(schedule.stages,
                                          std::vector<SlotCosts>(schedule.chunks, costs));
  return reportByStage(schedule, all);
}

ScheduleReport partita::stages::reportByStage(const Schedule &schedule,
                                              llvm::ArrayRef<std::vector<SlotCosts>> costs) {
  Execution execution(schedule, costs);
  execution.run();
  ScheduleReport result;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    double work = 0;
    int kept = 0, most = 0;
    for (const Slot &slot : schedule.slots[stage]) {
      work += execution.costOf(stage, slot);
      kept += slot.kind == PassKind::Forward;
      most = std::max(most, kept);
      kept -= slot.kind == schedule.kinds().back().kind;
    }
    result.inFlight.push_back(most);
    result.work.push_back(work);
    result.time = std::max(result.time, execution.now[stage]);
    double first = execution.begins[stage].empty() ? 0 : execution.begins[stage].front();
    result.idleInside = std::max(result.idleInside, execution.now[stage] - first - work);
  }
  result.begins = std::move(execution.begins);
  return result;
}

//===------------------------------------------------------------------------------------------===//
// Whether programs of this schedule finish
//===------------------------------------------------------------------------------------------===//

/// Finds a slot that is out of range, duplicate, missing, or not after the pass of its chunk whose
/// values it reads.
static std::string findWrongSlot(const Schedule &schedule) {
  for (auto [stage, slots] : llvm::enumerate(schedule.slots)) {
    std::map<std::tuple<PassKind, int, int>, size_t> seen;
    for (auto [number, slot] : llvm::enumerate(slots)) {
      std::string place = placeText(schedule, static_cast<int>(stage), number);
      auto isOutside = [&](const char *noun, int64_t which, int64_t count) {
        return which < 0 || which >= count
                   ? place + ": there is no " + noun + " " + std::to_string(which) +
                         (count == 1 ? ", only 0" : ", only 0 to " + std::to_string(count - 1))
                   : std::string();
      };
      for (const std::string &problem :
           {isOutside("chunk", slot.chunk, schedule.chunks),
            isOutside("micro-batch", slot.microBatch, schedule.microBatches)})
        if (!problem.empty())
          return problem;
      if (slot.kind == PassKind::Weights && !schedule.splitsBackward)
        return place + ": the backward passes of this schedule are not split";
      auto [first, isNew] = seen.try_emplace({slot.kind, slot.chunk, slot.microBatch}, number);
      if (!isNew)
        return place + ": runs already in slot " + std::to_string(first->second);
    }
    for (const train::PassKindRow &row : schedule.kinds())
      for (int chunk = 0; chunk < schedule.chunks; ++chunk)
        for (int micro = 0; micro < schedule.microBatches; ++micro)
          if (!seen.count({row.kind, chunk, micro}))
            return "stage " + std::to_string(stage) + " has no slot for the " +
                   text(schedule, {{row.kind, chunk}, micro});
    for (auto [number, slot] : llvm::enumerate(slots)) {
      const train::PassKindRow *row = train::rowBefore(slot.kind);
      if (!row)
        continue;
      Slot before{{row->kind, slot.chunk}, slot.microBatch};
      if (seen[{before.kind, slot.chunk, slot.microBatch}] > number)
        return placeText(schedule, static_cast<int>(stage), number) + ": waits for the " +
               text(schedule, before) + " on stage " + std::to_string(stage) +
               ", which comes after it";
    }
  }
  return {};
}

std::vector<std::vector<Step>> partita::stages::stepsOf(const Schedule &schedule) {
  std::vector<std::vector<Step>> all(schedule.slots.size());
  for (auto [number, slots] : llvm::enumerate(schedule.slots)) {
    int stage = static_cast<int>(number);
    std::vector<Step> &steps = all[number];
    std::vector<Step> atEnd;
    for (const Slot &slot : slots) {
      std::optional<int> target = targetOf(schedule, stage, slot);
      int to = target ? schedule.placeOf(*target).first : stage;
      Step await{Step::Await, {slot.pass(), 0}, to};
      if (to != stage)
        steps.push_back(await);
      if (std::optional<int> source = sourceOf(schedule, stage, slot)) {
        auto [from, chunk] = schedule.placeOf(*source);
        if (from != stage)
          steps.push_back({Step::Receive, {{slot.kind, chunk}, slot.microBatch}, from});
      }
      steps.push_back({Step::Run, slot});
      if (to == stage)
        continue;
      steps.push_back({Step::Send, slot, to});
      if (!llvm::is_contained(atEnd, await))
        atEnd.push_back(await);
    }
    llvm::append_range(steps, atEnd);
  }
  return all;
}

namespace {

/// Runs the steps of all stages side by side. A condition that a step waits for stays true once it
/// is, and every channel has one sender and one receiver. So all orders of execution end alike: if
/// this one finishes, they all do.
class ProgramRun {
public:
  ProgramRun(const Schedule &schedule, llvm::ArrayRef<std::vector<Step>> steps)
      : schedule(schedule), steps(steps), next(schedule.stages, 0), isReceiving(schedule.stages),
        ran(schedule.stages, 0) {}

  std::string run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (int stage = 0; stage < schedule.stages; ++stage)
        while (const Step *step = at(stage)) {
          bool isDone = false;
          if (std::string problem = run(stage, *step, isDone); !problem.empty())
            return placeOf(stage) + ": " + problem;
          if (!isDone)
            break;
          ++next[stage];
          isReceiving[stage] = false;
          moves = true;
        }
    }
    for (int stage = 0; stage < schedule.stages; ++stage)
      if (const Step *step = at(stage))
        return placeOf(stage) + ": " + whyWaits(*step);
    for (int stage = 0; stage < schedule.stages; ++stage)
      if (ran[stage] < schedule.slots[stage].size())
        return placeOf(stage) + ": the stage's steps end before it";
    for (const auto &[from, channel] : channels)
      if (channel.awaited < channel.sent.size())
        return placeOf(schedule.placeOf(from.second).first) + ": does not await what it has sent";
    return {};
  }

private:
  /// A channel from one position to the next, or back. The n-th receive gets the n-th message.
  struct Channel {
    std::vector<int> sent; ///< micro-batches
    size_t receives = 0;   ///< receives that have begun
    size_t awaited = 0;    ///< sends awaited
  };
  using ChannelKey = std::pair<PassKind, int>; // kind of pass, position that sends

  const Step *at(int stage) const {
    return next[stage] < steps[stage].size() ? &steps[stage][next[stage]] : nullptr;
  }

  Pass passOf(int stage, const Slot &slot) const {
    return {slot.kind, schedule.positionOf(stage, slot.chunk), slot.microBatch};
  }

  /// Describes the slot that a stage is at, or that it is past its last one.
  std::string placeOf(int stage) const {
    size_t count = schedule.slots[stage].size();
    return ran[stage] < count ? placeText(schedule, stage, ran[stage])
                              : "stage " + std::to_string(stage) + ", after its last slot";
  }

  std::string run(int stage, const Step &step, bool &isDone) {
    switch (step.kind) {
    case Step::Run:
      isDone = true;
      return runSlot(stage, step.slot);
    case Step::Receive:
      return receive(stage, step, isDone);
    case Step::Await:
    case Step::Send:
      break;
    }
    std::optional<int> target = targetOf(schedule, stage, step.slot);
    if (!target || step.peer == stage || schedule.placeOf(*target).first != step.peer)
      return "sends nothing to stage " + std::to_string(step.peer);
    Channel &channel = channelOf(stage, step.slot);
    if (step.kind == Step::Await) {
      isDone = channel.receives >= channel.sent.size();
      channel.awaited = isDone ? channel.sent.size() : channel.awaited;
      return {};
    }
    isDone = true;
    if (!done.count(passOf(stage, step.slot)))
      return "sends the " + text(schedule, step.slot) + ", which has not run";
    if (channel.awaited < channel.sent.size())
      return "sends again before it awaits what it has sent";
    channel.sent.push_back(step.slot.microBatch);
    return {};
  }

  std::string receive(int stage, const Step &step, bool &isDone) {
    bool isStage = step.peer >= 0 && step.peer < schedule.stages && step.peer != stage;
    std::optional<int> target = isStage ? targetOf(schedule, step.peer, step.slot) : std::nullopt;
    if (!target || schedule.placeOf(*target).first != stage)
      return "receives nothing from stage " + std::to_string(step.peer);
    Channel &channel = channelOf(step.peer, step.slot);
    if (!isReceiving[stage])
      ++channel.receives;
    isReceiving[stage] = true;
    isDone = channel.sent.size() >= channel.receives;
    if (!isDone)
      return {};
    arrived.insert(passOf(step.peer, step.slot));
    int sent = channel.sent[channel.receives - 1];
    return sent == step.slot.microBatch
               ? ""
               : "receives micro-batch " + std::to_string(sent) +
                     "'s message: they are taken in the order in which stage " +
                     std::to_string(step.peer) + " sends them";
  }

  std::string runSlot(int stage, const Slot &slot) {
    if (ran[stage] >= schedule.slots[stage].size() || !(schedule.slots[stage][ran[stage]] == slot))
      return "the stage's steps run the " + text(schedule, slot) + " here";
    if (std::optional<int> source = sourceOf(schedule, stage, slot)) {
      auto [from, chunk] = schedule.placeOf(*source);
      Slot before{{slot.kind, chunk}, slot.microBatch};
      if (from == stage && !done.count(passOf(from, before)))
        return waitsFor(from, before) + ", which comes after it";
      if (from != stage && !arrived.count(passOf(from, before)))
        return "reads the " + text(schedule, before) + " before it receives it";
    }
    if (targetOf(schedule, stage, slot))
      if (const Channel &channel = channelOf(stage, slot); channel.awaited < channel.sent.size())
        return "overwrites what it has sent before it awaits that";
    done.insert(passOf(stage, slot));
    ++ran[stage];
    return {};
  }

  std::string waitsFor(int stage, const Slot &slot) const {
    return "waits for the " + text(schedule, slot) + " on stage " + std::to_string(stage);
  }

  std::string whyWaits(const Step &step) const {
    if (step.kind == Step::Await)
      return "waits until what this pass sent the last time is received, which never happens";
    std::string text = waitsFor(step.peer, step.slot);
    return at(step.peer) ? text + ", which does not get there: it waits at its slot " +
                               std::to_string(ran[step.peer])
                         : text + ", which sends nothing more";
  }

  Channel &channelOf(int from, const Slot &slot) {
    return channels[{slot.kind, schedule.positionOf(from, slot.chunk)}];
  }

  const Schedule &schedule;
  llvm::ArrayRef<std::vector<Step>> steps;
  std::vector<size_t> next;      ///< per stage: its next step
  std::vector<bool> isReceiving; ///< per stage: whether its next step, a receive, has begun
  std::vector<size_t> ran;       ///< per stage: how many slots have run
  std::set<Pass> done, arrived;
  std::map<ChannelKey, Channel> channels;
};

} // namespace

std::string partita::stages::findProblem(const Schedule &schedule,
                                         llvm::ArrayRef<std::vector<Step>> steps) {
  for (auto [what, count] : {std::pair("slots", schedule.slots.size()), {"steps", steps.size()}})
    if (static_cast<int>(count) != schedule.stages)
      return std::string("there are ") + what + " of " + std::to_string(count) +
             " stages, not of " + std::to_string(schedule.stages);
  if (std::string wrong = findWrongSlot(schedule); !wrong.empty())
    return wrong;
  return ProgramRun(schedule, steps).run();
}

std::string partita::stages::findProblem(const Schedule &schedule) {
  return findProblem(schedule, stepsOf(schedule));
}

std::string partita::stages::findProblem(const Schedule &schedule, llvm::StringRef name) {
  std::string problem = findProblem(schedule);
  return problem.empty() || !isFile(name) ? problem : name.str() + ": " + problem;
}

bool partita::stages::lastJoins(const Schedule &schedule) {
  if (schedule.stages < 2 || static_cast<int>(schedule.slots.size()) != schedule.stages ||
      schedule.chunks > 1 || schedule.splitsBackward || !train::alternate(schedule.slots.back()))
    return false;
  int64_t ahead = 0;
  for (const Slot &slot : schedule.slots[schedule.stages - 2]) {
    ahead += slot.kind == PassKind::Forward ? 1 : slot.kind == PassKind::Backward ? -1 : 0;
    if (ahead > 2)
      return false;
  }
  return true;
}

mlir::FailureOr<Schedule> partita::stages::scheduleOf(mlir::ModuleOp program) {
  return scheduleOf(program,
                    pipe::positionsOf(pipe::stagesOf(program).front()).value_or(pipe::Positions{}));
}

mlir::FailureOr<Schedule> partita::stages::scheduleOf(mlir::ModuleOp program,
                                                      const pipe::Positions &layout) {
  auto chosen = program->getAttrOfType<train::ScheduleAttr>(train::TrainDialect::kSchedule);
  if (!chosen)
    return program.emitError() << "has no " << train::TrainDialect::kSchedule
                               << "; choose-schedule sets it before the program is cut into stages";
  size_t orders = chosen.getOrders().size();
  if (static_cast<int64_t>(orders) != layout.stages)
    return program.emitError() << "schedule: it is for " << orders << " stages, the program has "
                               << layout.stages;
  Schedule schedule = fromAttribute(chosen, layout);
  if (std::string problem = findProblem(schedule, chosen.getName()); !problem.empty())
    return program.emitError() << "schedule: " << problem;
  return schedule;
}
