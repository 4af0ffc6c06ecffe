// A process's rank, as the others see it: it has met them, shows where it is, and records what it
// does.

#ifndef PARTITA_RT_PROCESSES_LAUNCHED_RANK_H
#define PARTITA_RT_PROCESSES_LAUNCHED_RANK_H

#include "common/mesh/flight.h"
#include "common/mesh/rank_position.h"
#include "processes/rendezvous.h"

namespace partita_rt::processes {

struct LaunchedRank {
  /// Meets the other ranks (Rendezvous), within the time-out of joining.
  LaunchedRank(const LaunchEnvironment &environment, const Program &program);

  RankPosition position;
  FlightRing flight;
  Rendezvous rendezvous; ///< uses the others
};

/// Does readEnvironment. Ranks with invalid variables cannot meet: among those that one launcher
/// has started on a host, one prints the error, and all exit with 1.
LaunchEnvironment environmentOrExit(const Launched &launched, const char *program);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_LAUNCHED_RANK_H
