//===- Schedule.cpp - what follows from the slots of a schedule ----------------------------------===//

#include "partita/Stages/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace partita::stages;

std::pair<int, int> Schedule::placeOf(int position) const {
  pipe::Positions positions = layout();
  return {static_cast<int>(positions.stageOf(position)),
          static_cast<int>(positions.chunkOf(position))};
}

static std::string text(const Schedule &schedule, const Slot &slot) {
  static constexpr const char *names[] = {"forward", "backward", "weights"};
  return std::string(names[slot.kind]) + " of micro-batch " + std::to_string(slot.microBatch) +
         (schedule.chunks > 1 ? ", chunk " + std::to_string(slot.chunk) : "");
}

static std::string placeText(const Schedule &schedule, int stage, size_t number) {
  return "stage " + std::to_string(stage) + ", slot " + std::to_string(number) + " (" +
         text(schedule, schedule.slots[stage][number]) + ")";
}

namespace {

/// A pass of a micro-batch at a position.
using Pass = std::tuple<Slot::Kind, int, int>; // kind, position, micro-batch

/// Runs all stages side by side, each slot as soon as what it waits for is done.
class Execution {
public:
  Execution(const Schedule &schedule, llvm::ArrayRef<std::vector<SlotCosts>> costs)
      : schedule(schedule), costs(costs), next(schedule.stages, 0), now(schedule.stages, 0),
        begins(schedule.stages) {}
  /// At equal costs.
  explicit Execution(const Schedule &schedule) : Execution(schedule, {}) {}

  /// Does every stage come to its end?
  bool run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (int stage = 0; stage < schedule.stages; ++stage)
        while (next[stage] < schedule.slots[stage].size() && step(stage))
          moves = true;
    }
    return llvm::all_of(llvm::seq(0, schedule.stages),
                        [&](int stage) { return next[stage] == schedule.slots[stage].size(); });
  }

  /// What the passes before and behind this one at the same micro-batch are.
  std::vector<Pass> needs(int stage, const Slot &slot) const {
    int position = schedule.positionOf(stage, slot.chunk), micro = slot.microBatch;
    std::vector<Pass> passes;
    if (slot.kind == Slot::Forward && position > 0)
      passes.push_back({Slot::Forward, position - 1, micro});
    if (slot.kind == Slot::Backward)
      passes.push_back({Slot::Forward, position, micro});
    if (slot.kind == Slot::Backward && position + 1 < schedule.positions())
      passes.push_back({Slot::Backward, position + 1, micro});
    if (slot.kind == Slot::Weights)
      passes.push_back({Slot::Backward, position, micro});
    return passes;
  }

  double costOf(int stage, const Slot &slot) const {
    return (costs.empty() ? SlotCosts() : costs[stage][slot.chunk]).of(slot.kind);
  }

  const Schedule &schedule;
  llvm::ArrayRef<std::vector<SlotCosts>> costs; ///< of each stage each chunk's
  std::map<Pass, double> ends;
  std::vector<size_t> next;                ///< of each stage: its slot that has not run
  std::vector<double> now;                 ///< when its last slot has ended
  std::vector<std::vector<double>> begins; ///< of its slots

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

/// Each slot in range and once, and none missing.
static std::string findWrongSlot(const Schedule &schedule) {
  for (auto [stage, slots] : llvm::enumerate(schedule.slots)) {
    std::map<std::tuple<int, int, int>, size_t> seen;
    for (auto [number, slot] : llvm::enumerate(slots)) {
      std::string place = placeText(schedule, static_cast<int>(stage), number);
      if (slot.chunk < 0 || slot.chunk >= schedule.chunks || slot.microBatch < 0 ||
          slot.microBatch >= schedule.microBatches)
        return place + ": there are " + std::to_string(schedule.chunks) + " chunks and " +
               std::to_string(schedule.microBatches) + " micro-batches";
      if (slot.kind == Slot::Weights && !schedule.splitsBackward)
        return place + ": the backward passes of this schedule are not split";
      auto [first, isNew] = seen.try_emplace({slot.kind, slot.chunk, slot.microBatch}, number);
      if (!isNew)
        return place + ": runs already in slot " + std::to_string(first->second);
    }
    for (int kind = Slot::Forward;
         kind <= (schedule.splitsBackward ? Slot::Weights : Slot::Backward); ++kind)
      for (int chunk = 0; chunk < schedule.chunks; ++chunk)
        for (int micro = 0; micro < schedule.microBatches; ++micro)
          if (!seen.count({kind, chunk, micro}))
            return "stage " + std::to_string(stage) + " has no slot for the " +
                   text(schedule, {static_cast<Slot::Kind>(kind), chunk, micro});
  }
  return {};
}

std::string partita::stages::findProblem(const Schedule &schedule) {
  if (static_cast<int>(schedule.slots.size()) != schedule.stages)
    return "there are slots of " + std::to_string(schedule.slots.size()) + " stages, not of " +
           std::to_string(schedule.stages);
  if (std::string wrong = findWrongSlot(schedule); !wrong.empty())
    return wrong;
  Execution execution(schedule);
  if (execution.run())
    return {};
  for (int stage = 0; stage < schedule.stages; ++stage) {
    size_t number = execution.next[stage];
    if (number == schedule.slots[stage].size())
      continue;
    for (auto [kind, position, micro] : execution.needs(stage, schedule.slots[stage][number])) {
      if (execution.ends.count({kind, position, micro}))
        continue;
      auto [other, chunk] = schedule.placeOf(position);
      return placeText(schedule, stage, number) + ": waits for the " +
             text(schedule, {kind, chunk, micro}) + " on stage " + std::to_string(other) +
             (other == stage ? ", which comes behind it"
                             : ", which does not get there: it waits at its slot " +
                                   std::to_string(execution.next[other]));
    }
  }
  return {};
}

double ScheduleReport::bubbleShare() const {
  double slowest = work.empty() ? 0 : *llvm::max_element(work);
  return slowest > 0 ? (seconds - slowest) / slowest : 0;
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
      kept += slot.kind == Slot::Forward;
      most = std::max(most, kept);
      kept -= slot.kind == (schedule.splitsBackward ? Slot::Weights : Slot::Backward);
    }
    result.inFlight.push_back(most);
    result.work.push_back(work);
    result.seconds = std::max(result.seconds, execution.now[stage]);
    double first = execution.begins[stage].empty() ? 0 : execution.begins[stage].front();
    result.bubble = std::max(result.bubble, execution.now[stage] - first - work);
  }
  result.begins = std::move(execution.begins);
  return result;
}

//===------------------------------------------------------------------------------------------===//
// Messages
//===------------------------------------------------------------------------------------------===//

/// The position that a slot's result goes to; none from the ends, and none of weights.
static std::optional<int> goesTo(const Schedule &schedule, int stage, const Slot &slot) {
  int to = schedule.positionOf(stage, slot.chunk) + (slot.kind == Slot::Forward ? 1 : -1);
  bool isSent = slot.kind != Slot::Weights && to >= 0 && to < schedule.positions() &&
                schedule.placeOf(to).first != stage;
  return isSent ? std::optional(to) : std::nullopt;
}

std::vector<std::vector<Step>> partita::stages::stepsOf(const Schedule &schedule) {
  Execution execution(schedule);
  execution.run();
  struct Event {
    double at;
    bool runs; ///< behind the messages of its time
    int order; ///< among messages of one time
    Step step;
  };
  std::vector<std::vector<Event>> events(schedule.stages);
  int order = 0;
  for (int stage = 0; stage < schedule.stages; ++stage)
    for (auto [number, slot] : llvm::enumerate(schedule.slots[stage])) {
      double begin = execution.begins[stage][number];
      events[stage].push_back({begin, true, 0, {Step::Run, slot}});
      std::optional<int> to = goesTo(schedule, stage, slot);
      if (!to)
        continue;
      int peer = schedule.placeOf(*to).first;
      double end = begin + execution.costOf(stage, slot);
      events[stage].push_back({end, false, ++order, {Step::Send, slot, peer}});
      events[peer].push_back({end, false, order, {Step::Receive, slot, stage}});
    }
  std::vector<std::vector<Step>> steps(schedule.stages);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    llvm::sort(events[stage], [](const Event &a, const Event &b) {
      return std::tie(a.at, a.runs, a.order) < std::tie(b.at, b.runs, b.order);
    });
    for (const Event &event : events[stage])
      steps[stage].push_back(event.step);
  }
  return steps;
}

namespace {

/// Runs steps where a send and its receive happen together.
class Rendezvous {
public:
  Rendezvous(const Schedule &schedule, llvm::ArrayRef<std::vector<Step>> steps)
      : schedule(schedule), steps(steps), next(schedule.stages, 0), ran(schedule.stages) {}

  std::string run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (int stage = 0; stage < schedule.stages; ++stage)
        while (const Step *step = at(stage)) {
          if (step->kind == Step::Run) {
            if (std::string problem = runSlot(stage, step->slot); !problem.empty())
              return problem;
          } else if (step->kind == Step::Receive || !meets(stage, *step)) {
            break;
          } else {
            arrived.insert({passOf(stage, step->slot), step->peer});
            ++next[step->peer];
          }
          ++next[stage];
          moves = true;
        }
    }
    for (int stage = 0; stage < schedule.stages; ++stage)
      if (const Step *step = at(stage))
        return placeOf(stage) + ": " + (step->kind == Step::Send ? "sends to" : "receives from") +
               " stage " + std::to_string(step->peer) + ", which " +
               (step->peer >= 0 && step->peer < schedule.stages && at(step->peer)
                    ? "is at its step " + std::to_string(next[step->peer])
                    : "does nothing more");
    return {};
  }

  /// Of what each stage ran.
  const std::vector<std::vector<Slot>> &slots() const { return ran; }

private:
  const Step *at(int stage) const {
    return next[stage] < steps[stage].size() ? &steps[stage][next[stage]] : nullptr;
  }

  std::string placeOf(int stage) const {
    return "stage " + std::to_string(stage) + ", step " + std::to_string(next[stage]) + " (" +
           text(schedule, at(stage)->slot) + ")";
  }

  Pass passOf(int stage, const Slot &slot) const {
    return {slot.kind, schedule.positionOf(stage, slot.chunk), slot.microBatch};
  }

  /// Is the other stage about to receive this from here?
  bool meets(int stage, const Step &send) const {
    if (send.peer < 0 || send.peer >= schedule.stages || !done.count(passOf(stage, send.slot)))
      return false;
    const Step *other = at(send.peer);
    return other && other->kind == Step::Receive && other->peer == stage &&
           other->slot == send.slot;
  }

  std::string runSlot(int stage, const Slot &slot) {
    int position = schedule.positionOf(stage, slot.chunk);
    int from = position + (slot.kind == Slot::Forward ? -1 : 1);
    bool isFed = slot.kind != Slot::Weights && from >= 0 && from < schedule.positions();
    Pass pass{slot.kind, from, slot.microBatch};
    if (isFed &&
        (schedule.placeOf(from).first == stage ? !done.count(pass) : !arrived.count({pass, stage})))
      return placeOf(stage) + ": reads what it has not received";
    done.insert(passOf(stage, slot));
    ran[stage].push_back(slot);
    return {};
  }

  const Schedule &schedule;
  llvm::ArrayRef<std::vector<Step>> steps;
  std::vector<size_t> next;
  std::set<Pass> done;
  std::set<std::pair<Pass, int>> arrived; ///< and on which stage
  std::vector<std::vector<Slot>> ran;
};

} // namespace

std::string partita::stages::findProblem(const Schedule &schedule,
                                         llvm::ArrayRef<std::vector<Step>> steps) {
  if (static_cast<int>(steps.size()) != schedule.stages)
    return "there are steps of " + std::to_string(steps.size()) + " stages, not of " +
           std::to_string(schedule.stages);
  Rendezvous rendezvous(schedule, steps);
  if (std::string problem = rendezvous.run(); !problem.empty())
    return problem;
  for (int stage = 0; stage < schedule.stages; ++stage)
    if (rendezvous.slots()[stage] != schedule.slots[stage])
      return "stage " + std::to_string(stage) + ": its steps run other slots than the schedule";
  return {};
}

//===------------------------------------------------------------------------------------------===//
// As programs run it
//===------------------------------------------------------------------------------------------===//

namespace {

/// Stages side by side, each as far as messages let it.
class ProgramRun {
public:
  explicit ProgramRun(const Schedule &schedule)
      : schedule(schedule), next(schedule.stages, 0), receives(schedule.stages, false) {}

  std::string run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (int stage = 0; stage < schedule.stages; ++stage)
        while (next[stage] < schedule.slots[stage].size() && step(stage))
          moves = true;
    }
    for (int stage = 0; stage < schedule.stages; ++stage)
      if (next[stage] < schedule.slots[stage].size())
        return placeText(schedule, stage, next[stage]) +
               (receives[stage] ? ": waits for a message that is never sent"
                                : ": waits until what this pass sent the last time is received, which "
                                  "never happens");
    return {};
  }

private:
  /// On to the receive, or over the slot.
  bool step(int stage) {
    const Slot &slot = schedule.slots[stage][next[stage]];
    int position = schedule.positionOf(stage, slot.chunk);
    std::pair<int, int> pass{slot.kind, position};
    if (!receives[stage]) {
      auto last = lastSent.find(pass);
      if (last != lastSent.end() && !begun.count(last->second))
        return false;
      receives[stage] = true;
      if (std::optional<int> from = comesFrom(stage, slot))
        begun.insert({slot.kind, *from, slot.microBatch});
      return true;
    }
    if (std::optional<int> from = comesFrom(stage, slot);
        from && !sent.count({slot.kind, *from, slot.microBatch}))
      return false;
    if (goesTo(schedule, stage, slot)) {
      sent.insert({slot.kind, position, slot.microBatch});
      lastSent[pass] = {slot.kind, position, slot.microBatch};
    }
    receives[stage] = false;
    ++next[stage];
    return true;
  }

  /// The position that sends what the slot begins with; none of what is there anyway.
  std::optional<int> comesFrom(int stage, const Slot &slot) const {
    int from = schedule.positionOf(stage, slot.chunk) + (slot.kind == Slot::Forward ? -1 : 1);
    bool isFed = slot.kind != Slot::Weights && from >= 0 && from < schedule.positions() &&
                 schedule.placeOf(from).first != stage;
    return isFed ? std::optional(from) : std::nullopt;
  }

  const Schedule &schedule;
  std::vector<size_t> next;   ///< of each stage: its slot
  std::vector<bool> receives; ///< of each stage: is it at the slot's receive, or before it?
  std::set<Pass> sent, begun; ///< messages by the pass that sends them; begun: to be received
  std::map<std::pair<int, int>, Pass> lastSent; ///< by kind and position
};

} // namespace

/// The micro-batches of a pass in the order in which its stage runs them.
static std::vector<int> orderOf(const Schedule &schedule, Slot::Kind kind, int position) {
  auto [stage, chunk] = schedule.placeOf(position);
  std::vector<int> order;
  for (const Slot &slot : schedule.slots[stage])
    if (slot.kind == kind && slot.chunk == chunk)
      order.push_back(slot.microBatch);
  return order;
}

std::string partita::stages::findStall(const Schedule &schedule) {
  for (int position = 0; position + 1 < schedule.positions(); ++position) {
    int from = schedule.placeOf(position).first, to = schedule.placeOf(position + 1).first;
    for (Slot::Kind kind : {Slot::Forward, Slot::Backward})
      if (from != to && orderOf(schedule, kind, position) != orderOf(schedule, kind, position + 1))
        return std::string("stages ") + std::to_string(from) + " and " + std::to_string(to) +
               " run the " + (kind == Slot::Forward ? "forward" : "backward") +
               " passes of micro-batches in different orders, and messages are taken in the order in "
               "which they are sent";
  }
  return ProgramRun(schedule).run();
}
