// Launches ranks on CPUs (common/mesh/launch.h): as threads of this process, or as the processes
// that a launcher has started, which reach each other by MPI or over TCP.

#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/mesh/node_order.h"
#include "cpu/kernels/blas_buffers.h"
#include "cpu/links/sockets/socket_links.h"
#include "cpu/ranks/process_ranks.h"
#include "cpu/ranks/run_rank.h"
#include "cpu/ranks/thread_ranks.h"
#include "partita_rt/launchers.h"

namespace partita_rt {

/// Who has launched this process, and does MPI's library know it as a rank?
static Launched launchOf(const Program &program) {
  return whoLaunched(joinByMpi != nullptr, rankCount(program));
}
static bool joinsByMpi(const Launched &launched) {
  return joinByMpi && launched.isRank() && launched.launcher->isMpi;
}

//===-- World -------------------------------------------------------------------------------===//

/// Empty for ranks that are threads, and for processes whose number is not the program's.
struct World::Launch {
  std::unique_ptr<ProcessLinks> processes;
  bool isMpi;
};

World::World(const Program &program) {
  startWithoutBlasThreads();
  Launched launched = launchOf(program);
  if (joinsByMpi(launched)) {
    launch = std::make_unique<Launch>(Launch{joinByMpi(program), true});
    processCount = launch->processes->ranks();
  } else if (launched.isRank() || !launched.problem.empty()) {
    processes::LaunchEnvironment environment = processes::environmentOrExit(launched, program.name);
    processRank = environment.rank;
    processCount = environment.ranks;
    // If their number is wrong, they do not wait for each other to learn it.
    if (processCount > 1 && processCount == rankCount(program))
      launch = std::make_unique<Launch>(Launch{joinBySockets(environment, program), false});
  }
  if (launch) {
    processRank = launch->processes->rank();
    renumberedLine = renumberedText(launch->processes->launcherNumbers());
  }
}

World::~World() = default;

bool World::isFirstStarted(const Program &program) { return launchOf(program).rank == 0; }

std::string World::usage(const Program &program) {
  return std::string("mpirun -np RANKS ") + program.name +
         " ... (or torchrun --no-python --nproc-per-node RANKS, or srun)";
}

void World::check(const Program &program) const {
  int ranks = rankCount(program);
  Launched launched = launchOf(program);
  if (launch && launch->isMpi && processCount == 1 && launched.launcher == &kPmi)
    fail("%s started %d processes (%s, %s) that Open MPI cannot join; use Open MPI's mpirun, srun, "
         "or torchrun",
         kPmi.name, launched.ranks, kPmi.rank, kPmi.ranks);
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
