// Reads launchers' variables (launch_environment.h).

#include "processes/launch_environment.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/types.h"

#include <cstdlib>

namespace partita_rt::processes {

namespace {

std::string textOf(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

bool isSet(const char *name) { return !textOf(name).empty(); }

/// Returns the variable's number. Throws Error unless it is in 0 .. most.
int numberOf(const char *name, int most) {
  std::string problem;
  int number = launchNumber(std::getenv, name, most, problem);
  if (!problem.empty())
    fail("%s", problem.c_str());
  return number;
}

/// Returns ports below the system's range of ephemeral ports.
std::vector<int> portsFrom(const std::string &run) {
  uint64_t hash = fingerprint(reinterpret_cast<const unsigned char *>(run.data()),
                              int64_t(run.size()), int64_t(run.size()));
  std::vector<int> ports;
  for (int i = 0; i < 8; ++i)
    ports.push_back(15000 + int((hash + uint64_t(i) * 1237) % 17000));
  return ports;
}

/// Reads MASTER_ADDR and MASTER_PORT. `taken`: the launcher uses the port itself.
void readAddress(LaunchEnvironment &environment, bool taken) {
  if (isSet(kMasterAddress))
    environment.address = textOf(kMasterAddress);
  if (isSet(kMasterPort)) {
    int port = numberOf(kMasterPort, 65535);
    if (port == 0)
      fail("MASTER_PORT=0: rank 0's port is expected, 1 .. 65535");
    if (!taken)
      environment.ports.push_back(port);
  }
}

} // namespace

/// These read where rank 0 is, and the run's name.
static void readTorchrun(LaunchEnvironment &result) {
  std::string own = textOf(kPartitaRunId), elastic = textOf(kTorchrunRunId);
  for (const char *name : {kMasterAddress, kMasterPort})
    if (!isSet(name))
      fail("RANK and WORLD_SIZE are set, %s is not: where is rank 0?", name);
  // torchrun's agent itself listens on MASTER_PORT.
  readAddress(result, !elastic.empty() && textOf("TORCHELASTIC_USE_AGENT_STORE") != "False");
  result.run = own + " " + elastic + " " + textOf("TORCHELASTIC_RESTART_COUNT") + " " +
               textOf(kMasterAddress) + " " + textOf(kMasterPort);
  if (!own.empty() || !elastic.empty())
    for (int port : portsFrom(result.run))
      result.ports.push_back(port);
}

static void readOpenMpi(LaunchEnvironment &result) {
  bool oneHost =
      isSet(kOpenMpi.localRanks) && numberOf(kOpenMpi.localRanks, kMostRanks) == result.ranks;
  if (oneHost)
    result.address = "127.0.0.1";
  readAddress(result, false);
  if (result.address.empty())
    fail("mpirun has started ranks on several hosts: say where rank 0 is, mpirun -x "
         "MASTER_ADDR=HOST -x MASTER_PORT=PORT");
  std::string job = textOf("PMIX_NAMESPACE");
  if (job.empty())
    job = textOf("OMPI_MCA_ess_base_jobid");
  result.run = "mpirun " + job;
  if (result.ports.empty() && job.empty())
    fail("mpirun's job has no name (PMIX_NAMESPACE): give its ranks a port, mpirun -x "
         "MASTER_PORT=PORT");
  if (result.ports.empty())
    result.ports = portsFrom(result.run);
}

static void readSlurm(LaunchEnvironment &result) {
  if (isSet("SLURM_STEP_NUM_NODES") && numberOf("SLURM_STEP_NUM_NODES", kMostRanks) == 1)
    result.address = "127.0.0.1"; // a node's name in Slurm may have no address
  readAddress(result, false);
  if (result.address.empty()) {
    std::string hosts = textOf("SLURM_STEP_NODELIST");
    result.address = firstHost(hosts.empty() ? textOf("SLURM_NODELIST") : hosts);
  }
  if (!isSet("SLURM_JOB_ID"))
    fail("the launcher's variable SLURM_JOB_ID is not set");
  result.run = "srun " + textOf("SLURM_JOB_ID") + "." + textOf("SLURM_STEP_ID") + " " +
               textOf("SLURM_RESTART_COUNT");
  if (result.ports.empty())
    result.ports = portsFrom(result.run);
}

LaunchEnvironment readEnvironment(const Launched &launched) {
  if (!launched.problem.empty())
    fail("%s", launched.problem.c_str());
  LaunchEnvironment result;
  if (!launched.launcher)
    return result;
  result.launcher = launched.launcher->name;
  result.rank = launched.rank;
  result.ranks = launched.ranks;
  result.localRank = launched.localRank;
  if (result.ranks == 1)
    return result;
  if (launched.launcher == &kOpenMpi)
    readOpenMpi(result);
  else if (launched.launcher == &kSlurm)
    readSlurm(result);
  else
    readTorchrun(result);
  return result;
}

std::string launchName() {
  std::string text = "launch";
  for (const char *name :
       {kTorchrun.ranks, kMasterAddress, kMasterPort, kPartitaRunId, kTorchrunRunId,
        "TORCHELASTIC_RESTART_COUNT", kOpenMpi.ranks, "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
        "SLURM_JOB_ID", "SLURM_STEP_ID", kSlurm.ranks})
    text += " " + textOf(name);
  return text;
}

std::string firstHost(const std::string &list) {
  std::string host;
  size_t at = 0;
  while (at < list.size() && list[at] != ',') {
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    size_t end = list.find(']', at), stop = list.find_first_of("-,]", at);
    if (end == std::string::npos || stop == at + 1)
      fail("not a Slurm host list: %.200s", list.c_str());
    host += list.substr(at + 1, stop - at - 1);
    at = end + 1;
  }
  if (host.empty())
    fail("not a Slurm host list: \"%.200s\"", list.c_str());
  return host;
}

} // namespace partita_rt::processes
