// A board on which ranks that see each other's memory (threads of one process, or processes with a
// shared window) post the collectives they have started and their progress.

#ifndef PARTITA_RT_CPU_GROUPS_BOARD_H
#define PARTITA_RT_CPU_GROUPS_BOARD_H

#include "cpu/groups/group.h"

namespace partita_rt {

/// One rank's entry on the board; only that rank writes it. Plain memory and lock-free atomics, so
/// it may lie in a window shared by processes.
struct alignas(64) BoardSlot {
  /// Twice the max number of pending collectives: a rank can overwrite an entry only after the
  /// others have started collectives that they start after reading it.
  static constexpr uint64_t kRing = 128;
  using Counter = std::atomic<uint64_t>;
  Counter started;             ///< collectives published
  alignas(64) Counter filled;  ///< segments staged (window)
  alignas(64) Counter reduced; ///< shares computed: of collectives (threads), of segments (window)
  alignas(64) Counter read;    ///< segments that no longer need the others' staging memory (window)
  alignas(64) Signature ring[kRing];
};

class Board {
public:
  /// `first`: the number in the group of the first rank that has a slot here; the others follow it.
  Board(const std::string &axis, int rank, int size, BoardSlot *const *slots, int first = 0)
      : axis(axis), rank(rank), first(first), slots(slots, slots + size) {}

  void publish(const Signature &signature);
  /// Has every rank started collective `mine.number`? Throws Error if a rank has started a
  /// different one.
  bool agree(const Signature &mine);
  /// Returns the counter's minimum over all ranks.
  uint64_t least(BoardSlot::Counter BoardSlot::*counter) const;
  void set(BoardSlot::Counter BoardSlot::*counter, uint64_t value) {
    (slots[size_t(rank)]->*counter).store(value, std::memory_order_release);
  }
  /// Returns another rank that blocks this one's oldest collective, `mine`.
  int awaitedRank(const Signature &mine) const;
  /// "all_reduce #214 (...) for NAME, which has started 213 collectives"; `name`: awaitedRank()'s.
  std::string awaited(const Signature &mine, const std::string &name) const;

private:
  std::string axis;
  int rank, first;
  std::vector<BoardSlot *> slots;
  uint64_t agreed = 0; ///< collectives known to have been started alike by all
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_BOARD_H
