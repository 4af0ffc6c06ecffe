// Publishes a rank's waits to the other ranks. If one rank stalls, all others soon wait, many of
// them for ranks that are only waiting themselves, and the report must name the rank at which the
// chain of waits ends.

#ifndef PARTITA_RT_CPU_WATCH_WAITS_H
#define PARTITA_RT_CPU_WATCH_WAITS_H

#include "common/watch/flight.h"
#include "common/watch/rank_position.h"
#include "partita_rt/channel.h"

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
  void noteSlot(const Slot &slot);
  void noteLayer(int32_t layer) {
    position().layer.store(layer, std::memory_order_relaxed);
    move();
  }
  void noteWait(int peer, const std::string &what);
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
