// The board (board.h).

#include "cpu/groups/board.h"

#include <algorithm>
#include <utility>

namespace partita_rt {

void Board::publish(const Signature &signature) {
  BoardSlot &mine = *slots[size_t(rank)];
  mine.ring[signature.number % BoardSlot::kRing] = signature;
  mine.started.store(signature.number, std::memory_order_release);
}

bool Board::agree(const Signature &mine) {
  if (mine.number <= agreed)
    return true;
  bool all = true;
  for (int r = 0; r < int(slots.size()); ++r) {
    const BoardSlot &slot = *slots[size_t(r)];
    if (slot.started.load(std::memory_order_acquire) < mine.number) {
      all = false;
      continue;
    }
    const Signature &other = slot.ring[mine.number % BoardSlot::kRing];
    if (!other.matches(mine))
      throw Error(mismatchText(axis, first + rank, mine, first + r, other));
  }
  if (all)
    agreed = mine.number;
  return all;
}

uint64_t Board::least(BoardSlot::Counter BoardSlot::*counter) const {
  uint64_t least = ~uint64_t(0);
  for (const BoardSlot *slot : slots)
    least = std::min(least, (slot->*counter).load(std::memory_order_acquire));
  return least;
}

int Board::awaitedRank(const Signature &mine) const {
  // A rank that has not started the collective blocks all others. If all have, one lags in a
  // segment, which each rank fills, reduces and reads, every step after all others have done the
  // previous one; threads count reductions only.
  const BoardSlot &own = *slots[size_t(rank)];
  BoardSlot::Counter BoardSlot::*lacks = own.reduced > own.read     ? &BoardSlot::reduced
                                         : own.filled > own.reduced ? &BoardSlot::filled
                                                                    : &BoardSlot::read;
  auto progress = [&](int r) {
    const BoardSlot &slot = *slots[size_t(r)];
    return std::pair(std::min(slot.started.load(), mine.number), (slot.*lacks).load());
  };
  int last = rank == 0 && slots.size() > 1 ? 1 : 0;
  for (int r = 0; r < int(slots.size()); ++r)
    if (r != rank && progress(r) < progress(last))
      last = r;
  return last;
}

std::string Board::awaited(const Signature &mine, const std::string &name) const {
  uint64_t started = slots[size_t(awaitedRank(mine))]->started.load();
  return mine.text() + " for " + name +
         (started >= mine.number ? ", which has started it and done less of it than the others"
                                 : ", which has started " + std::to_string(started) +
                                       (started == 1 ? " collective" : " collectives"));
}

} // namespace partita_rt
