// Says which rank was killed (kill -9, out of memory), where launchers end the others: mpirun says only which
// process it was.

#ifndef PARTITA_RT_CPU_WATCH_DEATHS_H
#define PARTITA_RT_CPU_WATCH_DEATHS_H

#include "common/watch/flight.h"
#include "common/watch/rank_position.h"

#include <string>
#include <vector>

namespace partita_rt {

/// If a signal ends this process after another rank of its node has died, the message says which one,
/// where it was, and who waits; one of the node's ranks prints it, and writes the dead one's flight
/// recorder. One object per process, from when the ranks know each other until they part.
class DeathWatch {
public:
  /// A rank of this node, in memory that its processes share. A signal's handler reads it, so names are
  /// written beforehand.
  struct Watched {
    int rank;
    std::string name;
    RankPosition *position;
    FlightRing *flight;
  };
  /// `ranks`: ascending, with this process's own, `self`.
  DeathWatch(int self, std::vector<Watched> ranks);
  ~DeathWatch() { end(); }
  DeathWatch(const DeathWatch &) = delete;
  DeathWatch &operator=(const DeathWatch &) = delete;
  /// Call it before the rank ends by itself.
  void end();
  /// The same, with an error that it has printed. No rank of the node is called dead from here on: a launcher may
  /// end the others by SIGKILL.
  void endWithError();

private:
  friend struct DeathReport;
  const Watched &own() const;
  void writeOwnFlight(const char *reason) const;
  void appendWaiters(FixedText &text) const;

  const int self;
  const std::vector<Watched> ranks;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_WATCH_DEATHS_H
