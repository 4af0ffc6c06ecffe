// Publishes a rank's waits to the other ranks. If one rank stalls, all others soon wait, many of
// them for ranks that are only waiting themselves, and the report must name the rank at which the
// chain of waits ends.

#ifndef PARTITA_RT_CPU_WATCH_WAITS_H
#define PARTITA_RT_CPU_WATCH_WAITS_H

#include "common/watch/flight.h"
#include "common/watch/rank_position.h"
#include "partita_rt/channel.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace partita_rt {

/// What a rank shows of itself, and sees of the others.
struct RankView {
  RankPosition *position = nullptr;
  FlightRing *flight = nullptr;
  std::vector<const RankPosition *> positions; ///< by rank; null: nothing is known
  std::shared_ptr<void> owner;                 ///< of what they point to
};

/// What a rank shows to others that share memory with it.
struct ShownRank {
  RankPosition position;
  FlightRing flight;
  std::atomic<uint32_t> meetings{
      0}; ///< of all ranks to which it has come, in set-up and at the end, if MPI counts them
};

class RankWaits {
public:
  RankWaits(const Rank &rank, RankView view);

  /// Sets the function that moves the rank's messages during any wait.
  void setMoveMessages(std::function<void()> move) { moves = std::move(move); }
  void moveMessages() const {
    if (moves)
      moves();
  }
  int ranks() const { return int(view.positions.size()); }
  /// Is another rank, or a watch, about to report why the run ends?
  bool reportIsDue() const { return position().reportIsDue; }
  RankPosition &position() const { return *view.position; }
  const RankPosition *positionOf(int rank) const { return view.positions[size_t(rank)]; }
  FlightRing &flight() const { return *view.flight; }
  /// Notes that the rank has made progress.
  void move() { position().move(); }
  // The rank's own thread calls these, and no other; any thread, and any process that shares the memory, may read what they
  // publish at the same time. They allocate little, wait for nobody and throw nothing but bad_alloc.
  /// The rank begins a slot of its pipeline's schedule: publishes its number and text, and that the rank has moved.
  void noteSlot(const Slot &slot);
  /// The rank begins a layer, by its number in the model from 0; -1: none. It has moved.
  void noteLayer(int32_t layer) {
    position().layer.store(layer, std::memory_order_relaxed);
    move();
  }
  /// The rank waits, from now until noteWaitEnds(). `peer`: for which rank; less than 0: that is not known. `what`:
  /// "all_reduce #3 (...) for rank 1". Called again within a wait, replaces what is said of it, which is no move.
  void noteWait(int peer, const std::string &what);
  /// The wait, if there was one, has ended, and the rank has moved.
  void noteWaitEnds();
  /// Explains why `peer` does not arrive: "; rank 2 of stage 1 waits in receive #2 ... from rank 4
  /// of stage 2; rank 4 of stage 2 is at slot 4 (forward of h.7, micro-batch 2)". If it is unknown
  /// whom a rank waits for, names the ranks that do not wait. -1: names only those.
  std::string whyOf(int peer) const;
  /// May the wait for `peer` take as long as reading and writing of files takes?
  bool mayTakeLong(int peer) const;

private:
  std::string textOfRunning() const;

  const Program &program;
  int self;
  RankView view;
  bool waiting = false; ///< a wait was noted
  std::function<void()> moves;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_WATCH_WAITS_H
