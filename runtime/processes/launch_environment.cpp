// Reads launchers' variables (launch_environment.h).

#include "processes/launch_environment.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/launchers.h"
#include "partita_rt/types.h"

#include <cctype>
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
  std::string text = textOf(name);
  if (text.empty())
    fail("the launcher's variable %s is not set", name);
  bool digits = text.size() <= 9;
  for (char c : text)
    digits = digits && std::isdigit(static_cast<unsigned char>(c));
  if (!digits || std::atoi(text.c_str()) > most)
    fail("%s=%.40s: a number of 0 .. %d is expected", name, text.c_str(), most);
  return std::atoi(text.c_str());
}

constexpr int kMostRanks = 1 << 20;

LaunchEnvironment readPlace(const Launcher &names) {
  LaunchEnvironment result;
  result.launcher = names.name;
  result.rank = numberOf(names.rank, kMostRanks);
  result.ranks = numberOf(names.ranks, kMostRanks);
  if (result.rank >= result.ranks)
    fail("%s=%d, but %s=%d: ranks count from 0", names.rank, result.rank, names.ranks,
         result.ranks);
  if (isSet(names.localRank))
    result.localRank = numberOf(names.localRank, kMostRanks);
  if (result.localRank > result.rank) // local ranks are numbered in the order of ranks
    fail("%s=%d, but %s=%d: a rank cannot come later on its host than among all", names.localRank,
         result.localRank, names.rank, result.rank);
  if (names.localRanks && isSet(names.localRanks)) {
    int local = numberOf(names.localRanks, kMostRanks);
    if (local > result.ranks || (result.localRank >= local))
      fail("%s=%d, but %s=%d and %s=%d", names.localRanks, local, names.localRank, result.localRank,
           names.ranks, result.ranks);
  }
  return result;
}

/// Checks that two launchers whose variables are both set agree, unless a variable of the inner one
/// shows that it started the process.
void checkSame(const LaunchEnvironment &inner, const Launcher &innerNames,
               const Launcher &outerNames) {
  LaunchEnvironment outer = readPlace(outerNames);
  if (outer.rank != inner.rank || outer.ranks != inner.ranks)
    fail("%s=%d and %s=%d contradict %s=%d and %s=%d: which launcher has started this process?",
         innerNames.rank, inner.rank, innerNames.ranks, inner.ranks, outerNames.rank, outer.rank,
         outerNames.ranks, outer.ranks);
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
  if (isSet("MASTER_ADDR"))
    environment.address = textOf("MASTER_ADDR");
  if (isSet("MASTER_PORT")) {
    int port = numberOf("MASTER_PORT", 65535);
    if (port == 0)
      fail("MASTER_PORT=0: rank 0's port is expected, 1 .. 65535");
    if (!taken)
      environment.ports.push_back(port);
  }
}

} // namespace

static LaunchEnvironment readTorchrun() {
  LaunchEnvironment result = readPlace(kTorchrun);
  std::string own = textOf("PARTITA_RUN_ID"), elastic = textOf("TORCHELASTIC_RUN_ID");
  if (!own.empty())
    result.launcher = "partita run";
  if (own.empty() && elastic.empty()) {
    if (isSet(kOpenMpi.rank))
      checkSame(result, kTorchrun, kOpenMpi);
    else if (isSet(kSlurm.ranks))
      checkSame(result, kTorchrun, kSlurm);
  }
  if (result.ranks == 1)
    return result;
  for (const char *name : {"MASTER_ADDR", "MASTER_PORT"})
    if (!isSet(name))
      fail("RANK and WORLD_SIZE are set, %s is not: where is rank 0?", name);
  // torchrun's agent itself listens on MASTER_PORT.
  readAddress(result, !elastic.empty() && textOf("TORCHELASTIC_USE_AGENT_STORE") != "False");
  result.run = own + " " + elastic + " " + textOf("TORCHELASTIC_RESTART_COUNT") + " " +
               textOf("MASTER_ADDR") + " " + textOf("MASTER_PORT");
  if (!own.empty() || !elastic.empty())
    for (int port : portsFrom(result.run))
      result.ports.push_back(port);
  return result;
}

static LaunchEnvironment readOpenMpi() {
  LaunchEnvironment result = readPlace(kOpenMpi);
  if (result.ranks == 1)
    return result;
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
  return result;
}

static LaunchEnvironment readSlurm() {
  LaunchEnvironment result = readPlace(kSlurm);
  if (result.ranks == 1)
    return result;
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
  return result;
}

LaunchEnvironment readEnvironment() {
  if (isSet(kTorchrun.rank) && isSet(kTorchrun.ranks))
    return readTorchrun();
  // Other systems set one of the two as well: alone, it matters only without another launcher.
  if (isSet(kOpenMpi.rank))
    return readOpenMpi();
  if (isSet(kSlurm.rank) && isSet(kSlurm.ranks))
    return readSlurm();
  if (isSet(kTorchrun.rank) || (isSet(kTorchrun.ranks) && textOf(kTorchrun.ranks) != "1"))
    fail("of the launcher's variables RANK and WORLD_SIZE one is set, the other one is not");
  return {};
}

std::string launchName() {
  std::string text = "launch";
  for (const char *name :
       {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PARTITA_RUN_ID", "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_RESTART_COUNT", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE",
        "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"})
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
      fail("no list of hosts: %.200s", list.c_str());
    host += list.substr(at + 1, stop - at - 1);
    at = end + 1;
  }
  if (host.empty())
    fail("no list of hosts: \"%.200s\"", list.c_str());
  return host;
}

} // namespace partita_rt::processes
