// What ranks publish of themselves (rank_position.h).

#include "common/watch/rank_position.h"
#include "common/mesh/mesh.h"
#include "common/watch/flight.h"

#include <algorithm>
#include <cstring>

namespace partita_rt {

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<Phase>::is_always_lock_free,
              "positions lie in memory that processes share");

//===-- Texts -------------------------------------------------------------------------------===//

void writeText(RankPosition::Text &to, const std::string &text) {
  for (size_t i = 0; i < to.size(); ++i) {
    uint64_t word = 0;
    if (size_t at = i * sizeof(word); at < text.size())
      std::memcpy(&word, text.data() + at, std::min(sizeof(word), text.size() - at));
    to[i].store(word, std::memory_order_relaxed);
  }
}

void readText(const RankPosition::Text &from, char *text) {
  for (size_t i = 0; i < from.size(); ++i) {
    uint64_t word = from[i].load(std::memory_order_relaxed);
    std::memcpy(text + i * sizeof(word), &word, sizeof(word));
  }
  text[sizeof(RankPosition::Text)] = 0;
}

std::string readText(const RankPosition::Text &from) {
  char text[sizeof(RankPosition::Text) + 1];
  readText(from, text);
  return text;
}

//===-- Times -------------------------------------------------------------------------------===//

/// Reads until no step has been added meanwhile, or a few times: then one step's times are mixed.
WorkTotals readTotals(const RankPosition &position) {
  WorkTotals totals;
  for (int i = 0; i < 4; ++i) {
    totals.steps = position.steps.load(std::memory_order_acquire);
    for (size_t kind = 0; kind < totals.seconds.size(); ++kind)
      totals.seconds[kind] = position.seconds[kind].load(std::memory_order_acquire);
    if (position.steps.load(std::memory_order_acquire) == totals.steps)
      break;
  }
  return totals;
}

static void writeTotals(RankPosition &position, const WorkTotals &totals) {
  for (size_t kind = 0; kind < totals.seconds.size(); ++kind)
    position.seconds[kind].store(totals.seconds[kind], std::memory_order_release);
  position.steps.store(totals.steps, std::memory_order_release);
}

void addStep(RankPosition &position, const WorkClock &clock) {
  WorkTotals totals = readTotals(position);
  ++totals.steps;
  for (size_t kind = 0; kind < totals.seconds.size(); ++kind)
    totals.seconds[kind] += clock.seconds(Work(kind));
  writeTotals(position, totals);
}

//===-- Images ------------------------------------------------------------------------------===//

namespace {

struct PositionImage {
  uint64_t beats, moves;
  int64_t step;
  WorkTotals totals;
  int32_t waitsFor, layer;
  Phase phase;
  Work work;
  char slot[sizeof(RankPosition::Text)], wait[sizeof(RankPosition::Text)];
};

} // namespace

std::string imageOf(const RankPosition &position) {
  char slot[sizeof(RankPosition::Text) + 1], wait[sizeof(RankPosition::Text) + 1];
  readText(position.slot, slot);
  readText(position.wait, wait);
  PositionImage image;
  std::memset(static_cast<void *>(&image), 0, sizeof(image)); // also between its members
  image.beats = position.beats;
  image.moves = position.moves;
  image.step = position.step;
  image.totals = readTotals(position);
  image.waitsFor = position.waitsFor;
  image.layer = position.layer;
  image.phase = position.phase;
  image.work = position.work;
  std::memcpy(image.slot, slot, sizeof(image.slot));
  std::memcpy(image.wait, wait, sizeof(image.wait));
  return std::string(reinterpret_cast<const char *>(&image), sizeof(image));
}

void readImage(RankPosition &position, const std::string &bytes) {
  PositionImage image;
  if (bytes.size() != sizeof(image))
    fail("received a heartbeat of %zu bytes, not %zu", bytes.size(), sizeof(image));
  std::memcpy(static_cast<void *>(&image), bytes.data(), sizeof(image));
  if (image.phase > Phase::Ended || int(image.work) >= kWorkKinds ||
      image.waitsFor < RankPosition::kNoWait)
    fail("received a malformed heartbeat");
  if (image.beats < position.beats || position.phase == Phase::Ended)
    return;
  position.moves = image.moves;
  position.step = image.step;
  writeTotals(position, image.totals);
  position.waitsFor = image.waitsFor;
  position.layer = image.layer;
  position.phase = image.phase;
  position.work = image.work;
  writeText(position.slot, std::string(image.slot, strnlen(image.slot, sizeof(image.slot))));
  writeText(position.wait, std::string(image.wait, strnlen(image.wait, sizeof(image.wait))));
  position.isCopy = true;
  position.beats.store(image.beats, std::memory_order_release);
}

//===-- Reports -----------------------------------------------------------------------------===//

std::string processText(const std::string &rank, const std::string &host, int process) {
  return rank + " (host " + host + ", process " + std::to_string(process) + ")";
}

void appendWhere(FixedText &text, const RankPosition &position) {
  char slot[sizeof(RankPosition::Text) + 1], end[kSlotEnd];
  readText(position.slot, slot);
  slotEnd(position.layer.load(std::memory_order_relaxed), end);
  if (!*slot)
    end[std::strlen(end) - 1] = 0; // without the parenthesis
  const char *layer = *slot ? "" : end;
  int64_t step = position.step.load();
  switch (position.phase.load()) {
  case Phase::Unknown:
  case Phase::Ended:
    break;
  case Phase::SetUp:
    text << "in the set-up";
    break;
  case Phase::Step: // a slot says itself what it is
    text << "in step " << step;
    if (!*slot)
      text << " (" << nameOf(position.work.load()) << layer << ")";
    break;
  case Phase::Validation:
    text << "in a validation after step " << step << layer;
    break;
  case Phase::Saving:
    text << "at the checkpoint after step " << step;
    break;
  case Phase::Outputs:
    text << "at the results after step " << step << layer;
    break;
  }
  if (*slot)
    text << (text.isEmpty() ? "at " : ", at ") << slot << end;
}

std::string whereText(const RankPosition &position) {
  FixedText text;
  appendWhere(text, position);
  return text.get();
}

std::string waitText(const RankPosition &position) {
  return position.waitsFor == RankPosition::kNoWait ? "" : "waits in " + readText(position.wait);
}

static void appendWas(FixedText &text, const RankPosition &position, double seconds) {
  text << "was";
  if (!position.isCopy)
    return;
  text << " last seen";
  if (seconds >= 0) {
    auto tenths = int64_t(seconds * 10);
    text << ", " << tenths / 10 << "." << tenths % 10 << " s before,";
  }
}

std::string wasText(const RankPosition &position, double seconds) {
  FixedText text;
  appendWas(text, position, seconds);
  return text.get();
}

void appendDeath(FixedText &text, const char *name, const RankPosition *position, double seconds) {
  text << name << " died";
  if (!position)
    return;
  FixedText where;
  appendWhere(where, *position);
  bool waited = position->waitsFor != RankPosition::kNoWait;
  if (where.isEmpty() && !waited)
    return;
  text << "; it ";
  if (where.isEmpty())
    text << "waited in";
  else
    appendWas(text, *position, seconds);
  text << " " << where.get();
  if (!waited)
    return;
  if (!where.isEmpty())
    text << ", and waited in ";
  char wait[sizeof(RankPosition::Text) + 1];
  readText(position->wait, wait);
  text << wait;
}

std::string deathText(const std::string &name, const RankPosition *position, double seconds) {
  FixedText text;
  appendDeath(text, name.c_str(), position, seconds);
  return text.get();
}

//===-- A rank's own position ---------------------------------------------------------------===//

static const char *nameOf(Phase phase) {
  constexpr const char *kNames[] = {"",       "set-up",  "training", "validation",
                                    "saving", "results", "end"};
  return kNames[size_t(phase)];
}

void enterPhase(const Rank &rank, Phase phase) {
  if (!rank.position)
    return;
  rank.position->phase = phase;
  rank.position->move();
  if (rank.flight)
    rank.flight->note(Flight::Phase, 0, 0, nameOf(phase));
}

void noteStepNumber(const Rank &rank, int64_t step) {
  if (!rank.position)
    return;
  rank.position->step.store(step, std::memory_order_relaxed);
  rank.position->move();
  if (rank.flight)
    rank.flight->note(Flight::Step, step, 0, "");
}

void noteWork(const Rank &rank, Work work) {
  if (!rank.position)
    return;
  rank.position->work.store(work, std::memory_order_relaxed);
  rank.position->move();
  if (rank.flight)
    rank.flight->note(Flight::Work, 0, 0, nameOf(work));
}

PhaseScope::PhaseScope(const Rank &rank, Phase phase)
    : rank(rank), before(rank.position ? rank.position->phase.load() : Phase::Unknown) {
  enterPhase(rank, phase);
}

PhaseScope::~PhaseScope() { enterPhase(rank, before); }

WaitScope::WaitScope(RankPosition *position, const std::string &what) : position(position) {
  if (!position)
    return;
  writeText(position->wait, what);
  position->waitsFor.store(RankPosition::kUnknownRank, std::memory_order_release);
}

WaitScope::~WaitScope() {
  if (!position)
    return;
  position->waitsFor.store(RankPosition::kNoWait, std::memory_order_release);
  position->move();
}

} // namespace partita_rt
