// Where ranks that see each other's memory, threads of one process or processes with a shared
// window, say what they have started and how far they are.

#ifndef PARTITA_RT_CPU_BOARD_H
#define PARTITA_RT_CPU_BOARD_H

#include "cpu/group.h"

namespace partita_rt {

/// One rank's entry on the board; written by that rank alone. Plain memory and lock-free atomics,
/// so it may lie in a window shared by processes.
struct alignas(64) BoardSlot {
  /// Twice the collectives that may be under way: a rank can overwrite an entry only after the
  /// others have started collectives that they start after reading it.
  static constexpr uint64_t kRing = 128;
  using Counter = std::atomic<uint64_t>;
  Counter started;             ///< collectives published
  alignas(64) Counter filled;  ///< segments staged (window)
  alignas(64) Counter reduced; ///< shares computed: of collectives (threads), of segments (window)
  alignas(64) Counter read;    ///< segments that need the others' staging no more (window)
  alignas(64) Signature ring[kRing];
};

class Board {
public:
  Board(const std::string &axis, int rank, int size, BoardSlot *const *slots)
      : axis(axis), rank(rank), slots(slots, slots + size) {}

  void publish(const Signature &signature);
  /// Has every rank started collective `mine.number`? Throws Error where one of those that have
  /// has started another one.
  bool agree(const Signature &mine);
  /// What all ranks have reached.
  uint64_t least(BoardSlot::Counter BoardSlot::*counter) const;
  void set(BoardSlot::Counter BoardSlot::*counter, uint64_t value) {
    (slots[size_t(rank)]->*counter).store(value, std::memory_order_release);
  }
  /// Of the others, a rank without which this one cannot go on with its oldest collective, `mine`.
  int awaitedRank(const Signature &mine) const;
  /// "all_reduce #214 (...) for NAME, which has started 213 collectives"; `name`: awaitedRank()'s.
  std::string awaited(const Signature &mine, const std::string &name) const;

private:
  std::string axis;
  int rank;
  std::vector<BoardSlot *> slots;
  uint64_t agreed = 0; ///< collectives that all are known to have started alike
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_BOARD_H
