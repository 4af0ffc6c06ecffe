// A process's rank, as the others see it: it has met them, shows where it is, and records what it
// does.

#ifndef PARTITA_RT_PROCESSES_LAUNCHED_RANK_H
#define PARTITA_RT_PROCESSES_LAUNCHED_RANK_H

#include "common/watch/flight.h"
#include "common/watch/rank_position.h"
#include "processes/rendezvous.h"

namespace partita_rt::processes {

struct LaunchedRank {
  /// Meets the other ranks (Rendezvous), within the time-out of joining.
  LaunchedRank(const LaunchEnvironment &environment, const Program &program);

  RankPosition position;
  FlightRing flight;
  Rendezvous rendezvous; ///< uses the others
};

/// Calls readEnvironment. On an error, one of the processes that the launcher has started on this host prints
/// it, and all exit with 1: ranks with invalid variables cannot meet.
LaunchEnvironment environmentOrExit(const Launched &launched, const char *program);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_LAUNCHED_RANK_H
