// Launches ranks on CPUs (common/mesh/launch.h): as threads of this process, or as the processes
// that a launcher has started, which reach each other by MPI or over TCP.

#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "cpu/carriers/sockets/socket_processes.h"
#include "cpu/kernels/blas_buffers.h"
#include "cpu/ranks/process_ranks.h"
#include "cpu/ranks/run_rank.h"
#include "cpu/ranks/thread_ranks.h"
#include "partita_rt/launchers.h"

#include <cstdlib>
#include <cstring>

namespace partita_rt {

namespace {

/// Who has started this process as one of several.
enum class Started : uint8_t {
  Alone, ///< nobody: ranks are threads
  ByMpi, ///< a launcher that MPI can ask for the process's place
  ByOther,
};

/// Are such variables set, for several processes?
bool has(const Launcher &launcher) {
  return std::getenv(launcher.rank) && launchNumber(launcher.ranks) > 1;
}

/// Are some of torchrun's variables set, but not for a place among several processes? Then reading
/// them says what is wrong. Other systems set RANK as well: alone it has no effect.
bool isHalfSet() {
  const char *ranks = std::getenv(kTorchrun.ranks);
  return (ranks && std::strcmp(ranks, "1") != 0) ||
         (std::getenv(kTorchrun.rank) && std::getenv("MASTER_ADDR"));
}

/// Has a launcher started the process that MPI knows?
bool isMpiProcess() {
  if (std::getenv(kOpenMpi.ranks))
    return true;
  // Slurm offers PMI to steps of one task as well, in which all ranks should be threads.
  return !isOnlyProcess() && (std::getenv(kPmi.ranks) || std::getenv(kPmix.rank));
}

/// Of two launchers, one of which has started the other, the one counts that has started as many
/// processes as the program has ranks; `ranks`: 0 if that does not matter.
Started whoStarted(int ranks) {
  bool byTorchrun = has(kTorchrun), byMpi = isMpiProcess() && joinByMpi;
  bool fitsMpi = launchNumber(kOpenMpi.ranks) == ranks || launchNumber(kTorchrun.ranks) != ranks;
  if (byMpi && (!byTorchrun || fitsMpi))
    return Started::ByMpi;
  return byTorchrun || has(kSlurm) || has(kOpenMpi) || isHalfSet() ? Started::ByOther
                                                                   : Started::Alone;
}

} // namespace

//===-- World -------------------------------------------------------------------------------===//

/// Empty for ranks that are threads, and for processes whose number is not the program's.
struct World::Launch {
  std::unique_ptr<Processes> processes;
  bool isMpi;
};

World::World(const Program &program) {
  startWithoutBlasThreads();
  switch (whoStarted(rankCount(program))) {
  case Started::Alone:
    return;
  case Started::ByMpi:
    launch = std::make_unique<Launch>(Launch{joinByMpi(program), true});
    processRank = launch->processes->rank();
    processCount = launch->processes->ranks();
    return;
  case Started::ByOther:
    processes::LaunchEnvironment environment = processes::environmentOrExit(program.name);
    processRank = environment.rank;
    processCount = environment.ranks;
    // If their number is wrong, they do not wait for each other to learn it.
    if (processCount > 1 && processCount == rankCount(program))
      launch = std::make_unique<Launch>(Launch{joinBySockets(environment, program), false});
    return;
  }
}

World::~World() = default;

bool World::isFirstStarted() {
  if (std::getenv(kOpenMpi.ranks))
    return launchNumber(kOpenMpi.rank) == 0;
  for (const Launcher *launcher : {&kTorchrun, &kSlurm})
    if (has(*launcher))
      return launchNumber(launcher->rank) == 0;
  return launchNumber(kPmix.rank) == 0; // 0 if there is none
}

std::string World::usage(const Program &program) {
  return std::string("mpirun -np RANKS ") + program.name +
         " ... (or torchrun --no-python --nproc-per-node RANKS, or srun)";
}

void World::check(const Program &program) const {
  int ranks = rankCount(program);
  if (launch && launch->isMpi && processCount == 1 && has(kPmi))
    fail("%s started %d processes (%s, %s) that Open MPI cannot join; use Open MPI's mpirun, srun, "
         "or torchrun",
         kPmi.name, launchNumber(kPmi.ranks), kPmi.rank, kPmi.ranks);
  if ((launch || processCount > 1) && processCount != ranks)
    fail("the program was compiled for %d ranks (%s), %d %s; start %d, or compile it with another "
         "--mesh",
         ranks, meshText(program).c_str(), processCount,
         processCount == 1 ? "process was started" : "processes were started", ranks);
}

std::vector<std::string> World::gather(const std::string &mine, const char *what) {
  return launch ? launch->processes->allGather(mine, what) : std::vector<std::string>{mine};
}

std::string World::run(const Program &program, const RunOptions *options,
                       const std::function<void(Rank &)> &body) {
  if (launch) {
    runProcess(*launch->processes, program, options, body);
    return "";
  }
  try {
    prepareMatmuls(rankCount(program), options);
  } catch (const std::exception &error) {
    return error.what();
  }
  return runThreads(program, options, body);
}

} // namespace partita_rt
