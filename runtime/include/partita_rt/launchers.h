// The environment variables by which launchers give a process its rank. `partita run`, CPU programs
// and CUDA programs read them through these rows.

#ifndef PARTITA_RT_LAUNCHERS_H
#define PARTITA_RT_LAUNCHERS_H

#include <cstdlib>

namespace partita_rt {

/// Names of a launcher's variables; null for those that it does not set.
struct Launcher {
  const char *name; ///< for messages
  const char *rank, *ranks;
  const char *localRank, *localRanks; ///< among the processes on this host
};

inline constexpr Launcher kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                                    "LOCAL_WORLD_SIZE"};
inline constexpr Launcher kOpenMpi{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                   "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
/// MPICH and its relatives, and Slurm's `srun --mpi=pmi2`.
inline constexpr Launcher kPmi{"another MPI's launcher", "PMI_RANK", "PMI_SIZE", nullptr, nullptr};
/// Open MPI without its mpirun: `srun --mpi=pmix`.
inline constexpr Launcher kPmix{"a PMIx server", "PMIX_RANK", nullptr, nullptr, nullptr};
/// A batch script has SLURM_PROCID too, but only the tasks of a step have SLURM_STEP_NUM_TASKS.
inline constexpr Launcher kSlurm{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                                 nullptr};

/// Returns the variable's number; 0 if it is not set.
inline int launchNumber(const char *variable) {
  const char *text = std::getenv(variable);
  return text ? std::atoi(text) : 0;
}

/// Returns true if the process is the only task of its job step, such as a shell that srun has
/// started. It is then not one of several ranks; they are still to be started.
inline bool isOnlyProcess() {
  return launchNumber(kPmi.ranks) == 1 || launchNumber(kSlurm.ranks) == 1;
}

} // namespace partita_rt

#endif // PARTITA_RT_LAUNCHERS_H
