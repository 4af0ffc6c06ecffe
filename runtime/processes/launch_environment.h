// Reads a process's rank and the location of rank 0 from the launcher's variables.

#ifndef PARTITA_RT_PROCESSES_LAUNCH_ENVIRONMENT_H
#define PARTITA_RT_PROCESSES_LAUNCH_ENVIRONMENT_H

#include "partita_rt/launchers.h"

#include <string>
#include <vector>

namespace partita_rt::processes {

/// A process's position among those that a launcher has started, and where it meets them.
struct LaunchEnvironment {
  std::string launcher; ///< "torchrun", "partita run", "mpirun", "srun"; "" without a launcher
  int rank = 0;
  int ranks = 1;
  int localRank = -1;     ///< among the ranks of its host; -1: unknown
  std::string address;    ///< rank 0's host
  std::vector<int> ports; ///< rank 0 listens on the first free one; the others try all
  std::string run;        ///< distinguishes this run from others whose processes it might meet
};

/// Adds to a process's position where its launcher's other processes are. MASTER_ADDR and MASTER_PORT
/// say so, for any launcher; without them, ranks of mpirun and srun look for rank 0 on this host, or on
/// the first host of the step, at a port derived from the job's name. Without a launcher there is one
/// rank. Throws Error for invalid or contradictory values, and if only MPI knows the ranks.
LaunchEnvironment readEnvironment(const Launched &launched = whoLaunched(/*asksMpi=*/false));

/// Returns a name that distinguishes the ranks of this launch from others, however wrong their
/// variables are: it is made of all variables that are equal on all of them.
std::string launchName();

/// Returns "gpu-003" for "gpu-[003-007,9],login". Throws Error for a malformed list of hosts.
std::string firstHost(const std::string &list);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_LAUNCH_ENVIRONMENT_H
