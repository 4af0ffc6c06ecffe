// Follows chains of waits, and finds ranks that died (waits.h).

#include "cpu/watch/waits.h"
#include "common/mesh/mesh.h"
#include "common/run/interruption.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>
#include <unistd.h>

namespace partita_rt {

//===-- Deaths ------------------------------------------------------------------------------===//

/// What a signal's handler reads, so names are written beforehand.
struct DeathWatch {
  struct Watched {
    int rank;
    std::string name;
    RankPosition *position;
    FlightRing *flight;
  };
  int self;
  std::vector<Watched> ranks; ///< of this node, in ascending order
  const Watched &own() const {
    size_t at = 0;
    while (ranks[at].rank != self)
      ++at;
    return ranks[at];
  }
};

static std::atomic<DeathWatch *> watching{nullptr};

static void writeOwnFlight(const DeathWatch &watch, const char *reason) {
  const DeathWatch::Watched &own = watch.own();
  writeFlight(*own.flight, own.rank, own.name.c_str(), reason);
}

/// Has the process that was the rank ended, and not by itself?
static bool hasDied(const DeathWatch::Watched &rank) {
  int process = rank.position->process.load();
  return process != 0 && kill(process, 0) != 0 && errno == ESRCH;
}

/// Appends "; rank 0 (...) waits in all_reduce #3 (...) for rank 1" for each live rank that waits.
static void appendWaiters(FixedText &text, const DeathWatch &watch) {
  int waiters = 0;
  for (const DeathWatch::Watched &each : watch.ranks) {
    if (each.position->waitsFor == RankPosition::kNoWait || hasDied(each))
      continue;
    if (++waiters > kNamedWaiters)
      continue;
    char wait[sizeof(RankPosition::Text) + 1];
    readText(each.position->wait, wait);
    text << "; " << each.name.c_str() << " waits in " << wait;
  }
  if (waiters > kNamedWaiters)
    text << "; " << waiters - kNamedWaiters << " more ranks wait";
}

/// Returns " after rank 1 of stage 1 (host node-2, process 4711) died; it was in step 12, at slot 3 (...);
/// rank 0 of stage 0 (...) waits in ..."; "" if all ranks of the node run or have ended by themselves; null
/// if another process says it. Called by a signal's handler: uses atomics and kill() only.
static const char *textAfterDeath(bool ends) {
  static FixedText text, reason;
  text.clear();
  DeathWatch *watch = watching.load();
  for (size_t i = 0; watch && i < watch->ranks.size(); ++i)
    if (watch->ranks[i].position->runEnds.load()) {
      if (!ends)
        return " after a report";
      writeOwnFlight(*watch, "another rank has reported why the run ends");
      return nullptr;
    }
  bool isReported = false;
  for (size_t i = 0; watch && i < watch->ranks.size(); ++i) {
    const DeathWatch::Watched &each = watch->ranks[i];
    if (each.rank == watch->self) {
      if (ends)
        each.position->process.store(0);
      continue;
    }
    if (!hasDied(each))
      continue;
    reason.clear();
    appendDeath(reason, each.name.c_str(), each.position);
    if (ends && !each.position->isReported.exchange(true))
      writeFlight(*each.flight, each.rank, each.name.c_str(), reason.get());
    else
      isReported |= ends;
    text << (text.isEmpty() ? "" : "; ") << reason.get();
  }
  if (text.isEmpty())
    return "";
  appendWaiters(text, *watch);
  if (ends)
    writeOwnFlight(*watch, text.get());
  reason.clear();
  reason << " after " << text.get();
  return isReported ? nullptr : reason.get();
}

void RankWaits::watchDeaths(const std::vector<int> &local, const std::vector<std::string> &names,
                            const std::vector<RankPosition *> &positions,
                            const std::vector<FlightRing *> &flights) {
  watch = std::make_unique<DeathWatch>(DeathWatch{self, {}});
  for (int r : local)
    watch->ranks.push_back({r, names[size_t(r)], positions[size_t(r)], flights[size_t(r)]});
  position().process.store(getpid());
  watching.store(watch.get());
  setDeathText(textAfterDeath);
}

void RankWaits::endWatch() {
  if (!watch)
    return;
  watching.store(nullptr);
  position().process.store(0);
}

//===-- Waits -------------------------------------------------------------------------------===//

RankWaits::RankWaits(const Rank &rank, RankView view)
    : program(*rank.program), self(rank.rank), view(std::move(view)) {}

RankWaits::~RankWaits() { endWatch(); }

void RankWaits::noteSlot(const Slot &slot) {
  noteLayer(slot.layer);
  writeText(position().slot, slotText(slot));
  if (slot.number >= 0)
    flight().note(Flight::Slot, slot.number, 0, slot.what);
}

void RankWaits::noteWait(int peer, const std::string &what) {
  RankPosition &mine = position();
  writeText(mine.wait, what);
  mine.waitsFor.store(peer < 0 ? RankPosition::kNobody : peer, std::memory_order_release);
  waiting = true;
}

void RankWaits::noteWaitEnds() {
  if (waiting)
    position().waitsFor.store(RankPosition::kNoWait, std::memory_order_release);
  waiting = false;
  move();
}

/// Returns "; rank 3 waits for no other" for each rank of this node that does not wait.
std::string RankWaits::textOfRunning() const {
  std::string text;
  for (int r = 0; r < ranks(); ++r)
    if (const RankPosition *position = view.positions[size_t(r)];
        position && r != self && position->waitsFor.load() == RankPosition::kNoWait)
      text += "; " + rankText(program, r) + " waits for no other";
  return text;
}

/// A rank in such a phase waits for files itself, or for another rank in it.
bool RankWaits::mayTakeLong(int peer) const {
  if (takesLong(position().phase))
    return true;
  std::set<int> seen{self};
  while (peer >= 0 && view.positions[size_t(peer)] && seen.insert(peer).second) {
    if (takesLong(view.positions[size_t(peer)]->phase))
      return true;
    peer = view.positions[size_t(peer)]->waitsFor;
  }
  return false;
}

std::string RankWaits::whyOf(int peer) const {
  if (peer < 0)
    return textOfRunning();
  std::string text;
  std::set<int> seen{self};
  while (peer >= 0) {
    if (!seen.insert(peer).second)
      return text + "; they wait for one another";
    text += "; " + rankText(program, peer);
    const RankPosition *position = view.positions[size_t(peer)];
    if (!position)
      return text + ": nothing is known of it here";
    int waitsFor = position->waitsFor.load(std::memory_order_acquire);
    bool waits = waitsFor != RankPosition::kNoWait;
    std::string slot = readText(position->slot);
    int32_t layer = position->layer.load(std::memory_order_relaxed);
    char end[kSlotEnd];
    slotEnd(layer, end);
    if (slot.empty() && layer != Slot::kNoLayer)
      text += std::string(" (") + (end + 2); // without the comma
    if (!slot.empty())
      text += " is at " + slot + end + (waits ? " and" : "");
    else if (!waits)
      text += " waits for no other";
    if (waits)
      text += " waits in " + readText(position->wait);
    peer = waits ? waitsFor : -1;
    if (waits && peer < 0)
      text += textOfRunning();
  }
  return text;
}

} // namespace partita_rt
