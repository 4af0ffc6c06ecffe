// Who has launched this process, as which rank: the only header that reads the variables by which
// launchers say so. `partita run`, CPU programs and CUDA programs ask it, so this header includes no
// other header of the runtime, and throws nothing.

#ifndef PARTITA_RT_LAUNCHERS_H
#define PARTITA_RT_LAUNCHERS_H

#include <cstdlib>
#include <functional>
#include <string>

namespace partita_rt {

/// Names of a launcher's variables; null for those that it does not set.
struct Launcher {
  const char *name; ///< for messages
  const char *rank, *ranks;
  const char *localRank, *localRanks; ///< among the processes on this host
  bool isMpi;                         ///< Open MPI's library can ask it for the rank
};

inline constexpr Launcher kTorchrun{"torchrun",         "RANK", "WORLD_SIZE", "LOCAL_RANK",
                                    "LOCAL_WORLD_SIZE", false};
/// Starts ranks as torchrun does, and names the run (kPartitaRunId).
inline constexpr Launcher kPartitaRun{"partita run",      "RANK", "WORLD_SIZE", "LOCAL_RANK",
                                      "LOCAL_WORLD_SIZE", false};
inline constexpr Launcher kOpenMpi{"mpirun",
                                   "OMPI_COMM_WORLD_RANK",
                                   "OMPI_COMM_WORLD_SIZE",
                                   "OMPI_COMM_WORLD_LOCAL_RANK",
                                   "OMPI_COMM_WORLD_LOCAL_SIZE",
                                   true};
/// MPICH and its relatives, and Slurm's `srun --mpi=pmi2`.
inline constexpr Launcher kPmi{
    "another MPI's launcher", "PMI_RANK", "PMI_SIZE", nullptr, nullptr, true};
/// Open MPI without its mpirun: `srun --mpi=pmix`.
inline constexpr Launcher kPmix{"a PMIx server", "PMIX_RANK", nullptr, nullptr, nullptr, true};
/// A batch script has SLURM_PROCID too, but only the tasks of a step have SLURM_STEP_NUM_TASKS.
inline constexpr Launcher kSlurm{"srun",          "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                                 "SLURM_LOCALID", nullptr,        false};

/// Where rank 0 is, and the name of a run of `partita run` or torchrun.
inline constexpr const char *kMasterAddress = "MASTER_ADDR", *kMasterPort = "MASTER_PORT",
                            *kPartitaRunId = "PARTITA_RUN_ID",
                            *kTorchrunRunId = "TORCHELASTIC_RUN_ID";

/// Returns a variable's value; null if it is not set. An empty one counts as not set.
using Environment = std::function<const char *(const char *)>;

inline constexpr int kMostRanks = 1 << 20;

/// A process's position among those that a launcher has started.
struct Launched {
  const Launcher *launcher = nullptr; ///< null: none; or srun with one task, such as a shell
  int rank = 0;
  int ranks = 1;       ///< 0: unknown
  int localRank = -1;  ///< among the ranks of this host; -1: unknown
  std::string problem; ///< why the variables contradict each other or say nothing; or ""

  /// Does the launcher take this process for a rank? If not, the ranks are still to be started: torchrun
  /// with one process may run a supervisor. mpirun's one process is a rank: its server watches it.
  bool isRank() const { return launcher && (ranks != 1 || launcher == &kOpenMpi); }
};

namespace launchers_detail {

inline std::string textOf(const Environment &environment, const char *name) {
  const char *text = name ? environment(name) : nullptr;
  return text ? text : "";
}

inline bool isSet(const Environment &environment, const char *name) {
  return !textOf(environment, name).empty();
}

} // namespace launchers_detail

/// Returns the variable's number; 0, and a problem, unless it is in 0 .. most.
inline int launchNumber(const Environment &environment, const char *name, int most,
                        std::string &problem) {
  std::string text = launchers_detail::textOf(environment, name);
  bool isNumber = !text.empty() && text.size() <= 9 &&
                  text.find_first_not_of("0123456789") == std::string::npos &&
                  std::atoi(text.c_str()) <= most;
  if (!isNumber && problem.empty())
    problem = text.empty() ? std::string("the launcher's variable ") + name + " is not set"
                           : name + ("=" + text.substr(0, 40)) + ": a number of 0 .. " +
                                 std::to_string(most) + " is expected";
  return isNumber ? std::atoi(text.c_str()) : 0;
}

namespace launchers_detail {

/// Returns "RANK=5" or, with a second one, "RANK=5 and WORLD_SIZE=8".
inline std::string valueText(const char *name, int value) {
  return std::string(name) + "=" + std::to_string(value);
}
inline std::string positionText(const Launched &of) {
  return valueText(of.launcher->rank, of.rank) + " and " + valueText(of.launcher->ranks, of.ranks);
}

/// Returns what the number of ranks and the position on the host contradict, or "".
inline std::string contradiction(const Launched &of, int localRanks) {
  const Launcher &names = *of.launcher;
  std::string rank = valueText(names.rank, of.rank);
  if (names.ranks && of.rank >= of.ranks)
    return rank + ", but " + valueText(names.ranks, of.ranks) + ": ranks count from 0";
  if (of.localRank > of.rank) // local ranks are numbered in the order of ranks
    return valueText(names.localRank, of.localRank) + ", but " + rank +
           ": a rank cannot come later on its host than among all";
  if (localRanks >= 0 && (localRanks > of.ranks || of.localRank >= localRanks))
    return valueText(names.localRanks, localRanks) + ", but " +
           valueText(names.localRank, of.localRank) + " and " + valueText(names.ranks, of.ranks);
  return "";
}

inline Launched positionIn(const Launcher &names, const Environment &environment) {
  Launched result;
  result.launcher = &names;
  auto number = [&](const char *name) {
    return launchNumber(environment, name, kMostRanks, result.problem);
  };
  result.rank = number(names.rank);
  result.ranks = names.ranks ? number(names.ranks) : 0;
  if (isSet(environment, names.localRank))
    result.localRank = number(names.localRank);
  int localRanks = isSet(environment, names.localRanks) ? number(names.localRanks) : -1;
  if (result.problem.empty())
    result.problem = contradiction(result, localRanks);
  return result;
}

/// The launchers whose variables are set.
struct Candidates {
  const Launcher *torchrun = nullptr; ///< or partita run
  const Launcher *mpi = nullptr;
  const Launcher *slurm = nullptr;
  bool isNamed = false; ///< torchrun's run is, so torchrun has set its variables last
};

inline Candidates candidatesIn(const Environment &environment, bool asksMpi) {
  auto isSetIn = [&](const char *name) { return isSet(environment, name); };
  auto isOne = [&](const char *name) { return textOf(environment, name) == "1"; };
  // Other systems set one of torchrun's two variables as well.
  Candidates found;
  if (isSetIn(kTorchrun.rank) && isSetIn(kTorchrun.ranks))
    found.torchrun = isSetIn(kPartitaRunId) ? &kPartitaRun : &kTorchrun;
  found.isNamed = isSetIn(kPartitaRunId) || isSetIn(kTorchrunRunId);
  if (isSetIn(kOpenMpi.rank))
    found.mpi = &kOpenMpi;
  // Slurm offers PMI to steps of one task as well, such as a shell: its ranks are still to be started.
  if (isOne(kPmi.ranks) || isOne(kSlurm.ranks))
    return found;
  if (!found.mpi && asksMpi)
    found.mpi = isSetIn(kPmi.rank) && isSetIn(kPmi.ranks) ? &kPmi
                : isSetIn(kPmix.rank)                     ? &kPmix
                                                          : nullptr;
  if (isSetIn(kSlurm.rank) && isSetIn(kSlurm.ranks))
    found.slurm = &kSlurm;
  return found;
}

/// Of torchrun and MPI's launcher, one of which has started the other, the one counts that has started
/// as many processes as the program has ranks. If that does not tell, PMI is what Slurm offers to all.
inline bool torchrunCounts(const Candidates &found, const Launched &torchrun, const Launched &mpi,
                           int programRanks) {
  auto fits = [&](const Launched &one) {
    return programRanks == 0 || one.ranks == 0 || one.ranks == programRanks;
  };
  if (torchrun.ranks <= 1)
    return false;
  return fits(torchrun) != fits(mpi) ? fits(torchrun) : found.isNamed || found.mpi != &kOpenMpi;
}

} // namespace launchers_detail

/// Returns who has launched this process. `asksMpi`: a launcher that only MPI's library can ask counts
/// too, and before the others; `programRanks`: of the program, 0 if that is not known.
inline Launched whoLaunched(bool asksMpi, int programRanks = 0,
                            const Environment &environment = std::getenv) {
  using namespace launchers_detail;
  Candidates found = candidatesIn(environment, asksMpi);
  Launched mpi, result;
  if (found.mpi) {
    mpi = positionIn(*found.mpi, environment);
    if (mpi.ranks == 0 && found.mpi == &kPmix && found.slurm)
      mpi.ranks = positionIn(kSlurm, environment).ranks;
  }
  if (!found.torchrun && (found.mpi || found.slurm))
    return found.mpi ? mpi : positionIn(kSlurm, environment);
  if (!found.torchrun) {
    // A rank alone is another system's; with an address, somebody means torchrun's.
    if ((isSet(environment, kTorchrun.rank) && isSet(environment, kMasterAddress)) ||
        (isSet(environment, kTorchrun.ranks) && textOf(environment, kTorchrun.ranks) != "1"))
      result.problem = std::string("of the launcher's variables ") + kTorchrun.rank + " and " +
                       kTorchrun.ranks + " one is set, the other one is not";
    return result;
  }
  result = positionIn(*found.torchrun, environment);
  if (asksMpi && found.mpi && !torchrunCounts(found, result, mpi, programRanks))
    return mpi;
  const Launcher *outer = found.mpi == &kOpenMpi ? &kOpenMpi : found.slurm;
  if (found.isNamed || !outer || !result.problem.empty())
    return result;
  Launched other = positionIn(*outer, environment);
  result.problem = other.problem;
  if (other.problem.empty() && (other.rank != result.rank || other.ranks != result.ranks))
    result.problem = positionText(result) + " contradict " + positionText(other) +
                     ": which launcher has started this process?";
  return result;
}

/// Is mpirun above this process, whoever has started it? It gives processes a terminal of their own,
/// whatever its own output is.
inline bool isBelowMpirun(const Environment &environment = std::getenv) {
  return environment(kOpenMpi.ranks) != nullptr;
}

} // namespace partita_rt

#endif // PARTITA_RT_LAUNCHERS_H
