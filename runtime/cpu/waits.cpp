// Follows chains of waits (waits.h).

#include "cpu/waits.h"
#include "common/mesh/mesh.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace partita_rt {

namespace {

void write(RankPlace::Text &to, const std::string &text) {
  for (size_t i = 0; i < to.size(); ++i) {
    uint64_t word = 0;
    if (size_t at = i * sizeof(word); at < text.size())
      std::memcpy(&word, text.data() + at, std::min(sizeof(word), text.size() - at));
    to[i].store(word, std::memory_order_relaxed);
  }
}

std::string read(const RankPlace::Text &from) {
  char text[sizeof(RankPlace::Text) + 1] = {};
  for (size_t i = 0; i < from.size(); ++i) {
    uint64_t word = from[i].load(std::memory_order_relaxed);
    std::memcpy(text + i * sizeof(word), &word, sizeof(word));
  }
  return text;
}

} // namespace

RankWaits::RankWaits(const Rank &rank, std::vector<RankPlace *> places,
                     std::shared_ptr<void> memory)
    : program(*rank.program), self(rank.rank), places(std::move(places)),
      memory(std::move(memory)) {}

void RankWaits::noteSlot(const Slot &slot) { write(places[size_t(self)]->slot, slotText(slot)); }

void RankWaits::noteWait(int peer, const std::string &what) {
  RankPlace &mine = *places[size_t(self)];
  write(mine.wait, what);
  mine.waitsFor.store(peer < 0 ? RankPlace::kNobody : peer, std::memory_order_release);
  waiting = true;
}

void RankWaits::noteWaitEnds() {
  if (waiting)
    places[size_t(self)]->waitsFor.store(RankPlace::kNoWait, std::memory_order_release);
  waiting = false;
}

/// Returns "; rank 3 waits for no other" for each rank of this node that does not wait.
std::string RankWaits::textOfRunning() const {
  std::string text;
  for (int r = 0; r < ranks(); ++r)
    if (const RankPlace *place = places[size_t(r)];
        place && r != self && place->waitsFor.load() == RankPlace::kNoWait)
      text += "; " + rankText(program, r) + " waits for no other";
  return text;
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
    const RankPlace *place = places[size_t(peer)];
    if (!place)
      return text + " is on another node";
    int waitsFor = place->waitsFor.load(std::memory_order_acquire);
    bool waits = waitsFor != RankPlace::kNoWait;
    std::string slot = read(place->slot);
    if (!slot.empty())
      text += " is at " + slot + (waits ? " and" : "");
    else if (!waits)
      text += " waits for no other";
    if (waits)
      text += " waits in " + read(place->wait);
    peer = waits ? waitsFor : -1;
    if (waits && peer < 0)
      text += textOfRunning();
  }
  return text;
}

} // namespace partita_rt
