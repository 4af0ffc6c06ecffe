//===- Timeline.cpp - when each stage of a pipeline runs each slot --------------------------------===//

#include "partita/Stages/Timeline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>
#include <map>

using namespace llvm;
using namespace partita;
using namespace partita::stages;

/// Max number of slots in a picture; only edited manifests have more.
static constexpr int64_t kMostSlots = 1 << 22;

double Timeline::end(int stage, size_t slot) const {
  const Slot &each = schedule.slots[stage][slot];
  return begin(stage, slot) + costs[stage][each.chunk].of(each.kind);
}

int Timeline::slowest() const {
  return static_cast<int>(max_element(report.work) - report.work.begin());
}

/// Appends slots. Returns false if one is malformed.
static bool readSlots(const json::Array &texts, std::vector<Slot> &slots) {
  for (const json::Value &text : texts) {
    std::optional<Slot> slot = stages::parseSlot(text.getAsString().value_or(""));
    if (!slot)
      return false;
    slots.push_back(*slot);
  }
  return true;
}

/// Appends the slots of all runs. Returns false if an entry is malformed. A run has slots, or runs of its
/// own (`mayHaveParts`), which have slots.
static bool readRuns(const json::Array &runs, std::vector<Slot> &slots, bool mayHaveParts = true) {
  for (const json::Value &value : runs) {
    const json::Object *run = value.getAsObject();
    const json::Array *texts = run ? run->getArray("slots") : nullptr;
    const json::Array *parts = run && mayHaveParts ? run->getArray("runs") : nullptr;
    std::vector<Slot> first;
    if (!texts && !parts)
      return false;
    if (texts ? !readSlots(*texts, first) : !readRuns(*parts, first, /*mayHaveParts=*/false))
      return false;
    int64_t times = run->getInteger("times").value_or(0),
            step = run->getInteger("step").value_or(1);
    if (times < 1 || times > kMostSlots || step < 1 || step > kMostSlots / times ||
        times * static_cast<int64_t>(first.size()) + static_cast<int64_t>(slots.size()) >
            kMostSlots)
      return false;
    for (int64_t time : seq<int64_t>(0, times))
      for (Slot slot : first) {
        slot.microBatch += time * step;
        slots.push_back(slot);
      }
  }
  return true;
}

/// Reads costs. A pass without ops costs 1, or it would be invisible.
static std::vector<SlotCosts> readCosts(const json::Object *costs, int chunks) {
  auto cost = [&](StringRef kind, int chunk) {
    const json::Array *list = costs ? costs->getArray(kind) : nullptr;
    bool isThere = list && chunk < static_cast<int>(list->size());
    return std::max(isThere ? (*list)[chunk].getAsNumber().value_or(1) : 1., 1.);
  };
  std::vector<SlotCosts> result;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    SlotCosts &own = result.emplace_back();
    for (const train::PassKindRow &row : train::kPassKinds)
      own.each[static_cast<size_t>(row.kind)] = cost(row.word(), chunk);
  }
  return result;
}

static int64_t numberOf(const json::Object *byKind, StringRef kind, size_t chunk) {
  const json::Array *list = byKind ? byKind->getArray(kind) : nullptr;
  return list && chunk < list->size() ? (*list)[chunk].getAsInteger().value_or(0) : 0;
}

/// Returns the reductions listed in `noted`, at the last slots of their passes.
static std::vector<Timeline::Reduction> reductionsOf(const json::Object &noted,
                                                     ArrayRef<Slot> slots) {
  std::map<std::pair<PassKind, int>, size_t> last;
  for (auto [number, slot] : enumerate(slots))
    last[{slot.kind, slot.chunk}] = number;
  std::vector<Timeline::Reduction> result;
  for (auto [pass, number] : last) {
    auto [kind, chunk] = pass;
    StringRef name = train::stringifyPassKind(kind);
    auto cost = static_cast<double>(numberOf(noted.getObject("costs"), name, chunk)),
         beside = static_cast<double>(numberOf(noted.getObject("beside"), name, chunk));
    if (int64_t bytes = numberOf(noted.getObject("reduced"), name, chunk); bytes > 0)
      result.push_back({number, bytes, cost > 0 ? std::clamp(beside / cost, 0., 1.) : 0});
  }
  sort(result, [](const auto &a, const auto &b) { return a.slot < b.slot; });
  return result;
}

std::optional<Timeline> Timeline::of(const json::Array &list, std::string &problem) {
  Timeline timeline;
  Schedule &schedule = timeline.schedule;
  schedule.stages = static_cast<int>(list.size());
  std::vector<const json::Object *> noted;
  for (const json::Value &value : list) {
    const json::Object *stage = value.getAsObject();
    noted.push_back(stage ? stage->getObject("schedule") : nullptr);
    const json::Array *runs = noted.back() ? noted.back()->getArray("runs") : nullptr;
    if (!runs)
      return std::nullopt;
    schedule.isWave |= noted.back()->getBoolean("wave").value_or(false);
    if (!readRuns(*runs, schedule.slots.emplace_back())) {
      problem = "the manifest's \"schedule\" has entries that are not slots";
      return std::nullopt;
    }
  }
  for (const std::vector<Slot> &slots : schedule.slots)
    for (const Slot &slot : slots)
      schedule.chunks =
          std::max(schedule.chunks, static_cast<int>(std::min<int64_t>(slot.chunk, 1 << 10)) + 1);
  schedule.deriveFromSlots();
  problem = schedule.stages ? stages::findProblem(schedule) : "there are no stages";
  if (!problem.empty())
    return std::nullopt;
  for (auto [stage, each] : enumerate(noted)) {
    timeline.costs.push_back(readCosts(each->getObject("costs"), schedule.chunks));
    timeline.reductions.push_back(reductionsOf(*each, schedule.slots[stage]));
  }
  timeline.report = stages::reportByStage(schedule, timeline.costs);
  return timeline;
}

json::Object Timeline::toJson() const {
  json::Array all;
  for (int stage : seq(0, schedule.stages)) {
    json::Array slots;
    for (auto [number, slot] : enumerate(schedule.slots[stage]))
      slots.push_back(json::Object{{"slot", stages::slotText(slot)},
                                   {"begin", begin(stage, number)},
                                   {"end", end(stage, number)}});
    json::Array reduced;
    for (const Reduction &each : reductions[stage])
      reduced.push_back(json::Object{{"slot", stages::slotText(schedule.slots[stage][each.slot])},
                                     {"bytes", each.bytes},
                                     {"beside", each.beside}});
    all.push_back(json::Object{{"stage", stage},
                               {"work", report.work[stage]},
                               {"waits", report.time - report.work[stage]},
                               {"in_flight", report.inFlight[stage]},
                               {"slots", std::move(slots)},
                               {"reductions", std::move(reduced)}});
  }
  return json::Object{
      {"time", report.time}, {"bubble_share", report.bubbleShare()}, {"stages", std::move(all)}};
}
