// Follows chains of waits (waits.h).

#include "cpu/watch/waits.h"
#include "common/mesh/mesh.h"

#include <set>

namespace partita_rt {

RankWaits::RankWaits(const Rank &rank, RankView view)
    : program(*rank.program), self(rank.rank), view(std::move(view)) {}

void RankWaits::noteSlot(const Slot &slot) {
  noteLayer(slot.layer);
  writeText(position().slot, slotText(slot));
  if (slot.number >= 0)
    flight().note(Flight::Slot, slot.number, 0, slot.what);
}

void RankWaits::noteWait(int peer, const std::string &what) {
  RankPosition &mine = position();
  writeText(mine.wait, what);
  mine.waitsFor.store(peer < 0 ? RankPosition::kUnknownRank : peer, std::memory_order_release);
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
  while (peer >= 0 && peer < ranks() && view.positions[size_t(peer)] &&
         seen.insert(peer).second) { // it may have come in a datagram
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
  while (peer >= 0 && peer < ranks()) {
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
