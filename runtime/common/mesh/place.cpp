// What ranks publish of themselves (place.h).

#include "common/mesh/place.h"
#include "common/mesh/flight.h"
#include "common/mesh/mesh.h"

#include <algorithm>
#include <cstring>

namespace partita_rt {

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<Phase>::is_always_lock_free,
              "places lie in memory that processes share");

//===-- Texts -------------------------------------------------------------------------------===//

void writeText(RankPlace::Text &to, const std::string &text) {
  for (size_t i = 0; i < to.size(); ++i) {
    uint64_t word = 0;
    if (size_t at = i * sizeof(word); at < text.size())
      std::memcpy(&word, text.data() + at, std::min(sizeof(word), text.size() - at));
    to[i].store(word, std::memory_order_relaxed);
  }
}

void readText(const RankPlace::Text &from, char *text) {
  for (size_t i = 0; i < from.size(); ++i) {
    uint64_t word = from[i].load(std::memory_order_relaxed);
    std::memcpy(text + i * sizeof(word), &word, sizeof(word));
  }
  text[sizeof(RankPlace::Text)] = 0;
}

std::string readText(const RankPlace::Text &from) {
  char text[sizeof(RankPlace::Text) + 1];
  readText(from, text);
  return text;
}

//===-- Times -------------------------------------------------------------------------------===//

/// Reads until no step has been added meanwhile, or a few times: then one step's times are mixed.
WorkTotals readTotals(const RankPlace &place) {
  WorkTotals totals;
  for (int i = 0; i < 4; ++i) {
    totals.steps = place.steps.load(std::memory_order_acquire);
    for (size_t kind = 0; kind < totals.seconds.size(); ++kind)
      totals.seconds[kind] = place.seconds[kind].load(std::memory_order_acquire);
    if (place.steps.load(std::memory_order_acquire) == totals.steps)
      break;
  }
  return totals;
}

static void writeTotals(RankPlace &place, const WorkTotals &totals) {
  for (size_t kind = 0; kind < totals.seconds.size(); ++kind)
    place.seconds[kind].store(totals.seconds[kind], std::memory_order_release);
  place.steps.store(totals.steps, std::memory_order_release);
}

void addStep(RankPlace &place, const WorkClock &clock) {
  WorkTotals totals = readTotals(place);
  ++totals.steps;
  for (size_t kind = 0; kind < totals.seconds.size(); ++kind)
    totals.seconds[kind] += clock.seconds(Work(kind));
  writeTotals(place, totals);
}

//===-- Images ------------------------------------------------------------------------------===//

namespace {

struct PlaceImage {
  uint64_t beats, moves;
  int64_t step;
  WorkTotals totals;
  int32_t waitsFor, layer;
  Phase phase;
  Work work;
  char slot[sizeof(RankPlace::Text)], wait[sizeof(RankPlace::Text)];
};

} // namespace

std::string imageOf(const RankPlace &place) {
  char slot[sizeof(RankPlace::Text) + 1], wait[sizeof(RankPlace::Text) + 1];
  readText(place.slot, slot);
  readText(place.wait, wait);
  PlaceImage image;
  std::memset(static_cast<void *>(&image), 0, sizeof(image)); // also between its members
  image.beats = place.beats;
  image.moves = place.moves;
  image.step = place.step;
  image.totals = readTotals(place);
  image.waitsFor = place.waitsFor;
  image.layer = place.layer;
  image.phase = place.phase;
  image.work = place.work;
  std::memcpy(image.slot, slot, sizeof(image.slot));
  std::memcpy(image.wait, wait, sizeof(image.wait));
  return std::string(reinterpret_cast<const char *>(&image), sizeof(image));
}

void readImage(RankPlace &place, const std::string &bytes) {
  PlaceImage image;
  if (bytes.size() != sizeof(image))
    fail("what a rank says of itself has %zu bytes, not %zu", bytes.size(), sizeof(image));
  std::memcpy(static_cast<void *>(&image), bytes.data(), sizeof(image));
  if (image.phase > Phase::Ended || int(image.work) >= kWorkKinds)
    fail("what a rank says of itself is not what it should be");
  place.moves = image.moves;
  place.step = image.step;
  writeTotals(place, image.totals);
  place.waitsFor = image.waitsFor;
  place.layer = image.layer;
  place.phase = image.phase;
  place.work = image.work;
  writeText(place.slot, std::string(image.slot, strnlen(image.slot, sizeof(image.slot))));
  writeText(place.wait, std::string(image.wait, strnlen(image.wait, sizeof(image.wait))));
  place.isCopy = true;
  place.beats.store(image.beats, std::memory_order_release);
}

//===-- Reports -----------------------------------------------------------------------------===//

std::string processText(const std::string &rank, const std::string &host, int process) {
  return rank + " (host " + host + ", process " + std::to_string(process) + ")";
}

std::string whereText(const RankPlace &place) {
  char end[kSlotEnd];
  slotEnd(place.layer.load(std::memory_order_relaxed), end);
  std::string text, step = std::to_string(place.step.load()), slot = readText(place.slot);
  std::string layer(end, slot.empty() ? std::strlen(end) - 1 : 0); // without the parenthesis
  switch (place.phase.load()) {
  case Phase::Unknown:
  case Phase::Ended:
    break;
  case Phase::SetUp:
    text = "in the set-up";
    break;
  case Phase::Step:
    text = "in step " + step + " (" + nameOf(place.work.load()) + layer + ")";
    break;
  case Phase::Validation:
    text = "in a validation after step " + step + layer;
    break;
  case Phase::Saving:
    text = "at the checkpoint after step " + step;
    break;
  case Phase::Outputs:
    text = "at the results after step " + step + layer;
    break;
  }
  if (!slot.empty())
    text += (text.empty() ? "at " : ", at ") + slot + end;
  return text;
}

std::string waitText(const RankPlace &place) {
  return place.waitsFor == RankPlace::kNoWait ? "" : "waits in " + readText(place.wait);
}

//===-- A rank's own place ------------------------------------------------------------------===//

static const char *nameOf(Phase phase) {
  constexpr const char *kNames[] = {"",       "set-up",  "training", "validation",
                                    "saving", "results", "end"};
  return kNames[size_t(phase)];
}

void enterPhase(const Rank &rank, Phase phase) {
  if (!rank.place)
    return;
  rank.place->phase = phase;
  rank.place->move();
  if (rank.flight)
    rank.flight->note(Flight::Phase, 0, 0, nameOf(phase));
}

void noteStepNumber(const Rank &rank, int64_t step) {
  if (!rank.place)
    return;
  rank.place->step.store(step, std::memory_order_relaxed);
  rank.place->move();
  if (rank.flight)
    rank.flight->note(Flight::Step, step, 0, "");
}

void noteWork(const Rank &rank, Work work) {
  if (!rank.place)
    return;
  rank.place->work.store(work, std::memory_order_relaxed);
  rank.place->move();
  if (rank.flight)
    rank.flight->note(Flight::Work, 0, 0, nameOf(work));
}

PhaseScope::PhaseScope(const Rank &rank, Phase phase)
    : rank(rank), before(rank.place ? rank.place->phase.load() : Phase::Unknown) {
  enterPhase(rank, phase);
}

PhaseScope::~PhaseScope() { enterPhase(rank, before); }

WaitScope::WaitScope(RankPlace *place, const std::string &what) : place(place) {
  if (!place)
    return;
  writeText(place->wait, what);
  place->waitsFor.store(RankPlace::kNobody, std::memory_order_release);
}

WaitScope::~WaitScope() {
  if (!place)
    return;
  place->waitsFor.store(RankPlace::kNoWait, std::memory_order_release);
  place->move();
}

} // namespace partita_rt
