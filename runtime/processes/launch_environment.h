// Which rank a process is and where rank 0 is to be found, as the launcher's variables say.

#ifndef PARTITA_RT_PROCESSES_LAUNCH_ENVIRONMENT_H
#define PARTITA_RT_PROCESSES_LAUNCH_ENVIRONMENT_H

#include <string>
#include <vector>

namespace partita_rt::processes {

/// A process's place among those that a launcher has started.
struct LaunchEnvironment {
  std::string launcher; ///< "torchrun", "partita run", "mpirun", "srun"; "" where none did
  int rank = 0;
  int ranks = 1;
  int localRank = -1;     ///< among the ranks of its host; -1: the launcher does not say
  std::string address;    ///< rank 0's host
  std::vector<int> ports; ///< rank 0 listens on the first that is free; the others try all
  std::string run;        ///< tells this run from others whose processes may meet its own
};

/// From the first of these that has started the process:
///   torchrun, partita run   RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT
///   mpirun (Open MPI)       OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
///   srun (Slurm)            SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_STEP_NODELIST
/// MASTER_ADDR and MASTER_PORT also count for the other two, where rank 0 is otherwise looked for
/// on this host, or on the first of the step's, at a port that follows from the job's name. One
/// rank where no launcher is seen. Throws Error for values that are none, or contradict each other.
LaunchEnvironment readEnvironment();

/// What tells the ranks of this launch from others, however wrong their variables are: all that are
/// the same for each of them.
std::string launchName();

/// "gpu-003" of "gpu-[003-007,9],login". Throws Error for what is no list of hosts.
std::string firstHost(const std::string &list);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_LAUNCH_ENVIRONMENT_H
