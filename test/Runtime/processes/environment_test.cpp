// A process's position according to launchers' variables.

#include "processes/launch_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace partita_rt::processes {
namespace {

using Variables = std::map<std::string, std::string>;

/// Simulates a process without a launcher: launchers may run these tests.
void clearVariables() {
  for (const char *name : {"RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "PARTITA_RUN_ID",
                           "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_USE_AGENT_STORE",
                           "OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "PMIX_NAMESPACE",
                           "OMPI_MCA_ess_base_jobid",
                           "SLURM_PROCID",
                           "SLURM_STEP_NUM_TASKS",
                           "SLURM_LOCALID",
                           "SLURM_STEP_NODELIST",
                           "SLURM_STEP_NUM_NODES",
                           "SLURM_JOB_ID",
                           "SLURM_STEP_ID"})
    unsetenv(name);
}

LaunchEnvironment read(const Variables &variables) {
  clearVariables();
  for (const auto &[name, value] : variables)
    setenv(name.c_str(), value.c_str(), 1);
  struct Clear {
    ~Clear() { clearVariables(); }
  } afterwards;
  return readEnvironment();
}

std::string errorOf(const Variables &variables) {
  try {
    read(variables);
  } catch (const std::exception &error) {
    return error.what();
  }
  return "no error";
}

Variables with(Variables some, const Variables &others) {
  for (const auto &[name, value] : others)
    some[name] = value;
  return some;
}

const Variables kHand{{"RANK", "5"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"MASTER_ADDR", "a"},
                      {"MASTER_PORT", "29500"}};
const Variables kMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                     {"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                     {"PMIX_NAMESPACE", "prterun-7"}};
const Variables kSlurm{{"SLURM_PROCID", "9"},    {"SLURM_STEP_NUM_TASKS", "16"},
                       {"SLURM_LOCALID", "1"},   {"SLURM_STEP_NODELIST", "gpu-[07-08]"},
                       {"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_ID", "0"}};

TEST(Environment, NoLauncherIsOneRank) {
  LaunchEnvironment none = read({});
  EXPECT_EQ(none.ranks, 1);
  EXPECT_EQ(none.launcher, "");
  EXPECT_EQ(read({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "1"}}).ranks, 1); // a batch script
}

TEST(Environment, Torchrun) {
  LaunchEnvironment hand = read(kHand);
  EXPECT_EQ(hand.rank, 5);
  EXPECT_EQ(hand.ranks, 8);
  EXPECT_EQ(hand.localRank, 1);
  EXPECT_EQ(hand.address, "a");
  EXPECT_EQ(hand.ports, std::vector<int>{29500});
  // torchrun itself listens on its port; those of two runs differ.
  LaunchEnvironment elastic = read(with(kHand, {{"TORCHELASTIC_RUN_ID", "x"}}));
  EXPECT_EQ(elastic.ports.size(), 8u);
  EXPECT_NE(elastic.ports[0], 29500);
  EXPECT_NE(elastic.ports, read(with(kHand, {{"TORCHELASTIC_RUN_ID", "y"}})).ports);
  EXPECT_EQ(
      read(with(kHand, {{"TORCHELASTIC_RUN_ID", "x"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}}))
          .ports[0],
      29500);
  EXPECT_EQ(read(with(kHand, {{"PARTITA_RUN_ID", "x"}})).launcher, "partita run");
}

TEST(Environment, OpenMpi) {
  LaunchEnvironment mpi = read(kMpi);
  EXPECT_EQ(mpi.rank, 3);
  EXPECT_EQ(mpi.localRank, 3);
  EXPECT_EQ(mpi.address, "127.0.0.1");
  EXPECT_EQ(mpi.ports.size(), 8u);
  EXPECT_EQ(read(with(kMpi, {{"MASTER_ADDR", "b"}, {"MASTER_PORT", "1234"}})).ports,
            std::vector<int>{1234});
  EXPECT_EQ(errorOf(with(kMpi, {{"OMPI_COMM_WORLD_SIZE", "8"}})),
            "mpirun has started ranks on several hosts: say where rank 0 is, mpirun -x "
            "MASTER_ADDR=HOST -x MASTER_PORT=PORT");
}

TEST(Environment, Slurm) {
  LaunchEnvironment slurm = read(kSlurm);
  EXPECT_EQ(slurm.rank, 9);
  EXPECT_EQ(slurm.ranks, 16);
  EXPECT_EQ(slurm.localRank, 1);
  EXPECT_EQ(slurm.address, "gpu-07");
  EXPECT_EQ(slurm.ports.size(), 8u);
  EXPECT_NE(slurm.run, read(with(kSlurm, {{"SLURM_STEP_ID", "1"}})).run);
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_STEP_NUM_NODES", "2"}})).address, "gpu-07");
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}})).address, "127.0.0.1");
}

TEST(Environment, LaunchersWithinLaunchers) {
  // srun starts torchrun, which starts the ranks.
  EXPECT_EQ(read(with(with(kSlurm, kHand), {{"TORCHELASTIC_RUN_ID", "x"}})).rank, 5);
  EXPECT_EQ(errorOf(with(kSlurm, kHand)),
            "RANK=5 and WORLD_SIZE=8 contradict SLURM_PROCID=9 and SLURM_STEP_NUM_TASKS=16: which "
            "launcher has started this process?");
  EXPECT_EQ(errorOf(with(kMpi, kHand)),
            "RANK=5 and WORLD_SIZE=8 contradict OMPI_COMM_WORLD_RANK=3 and "
            "OMPI_COMM_WORLD_SIZE=4: which launcher has started this process?");
  EXPECT_EQ(
      read(with(kMpi,
                {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "c"}, {"MASTER_PORT", "5"}}))
          .address,
      "c");
}

TEST(Environment, ValuesThatAreNone) {
  EXPECT_EQ(errorOf(with(kHand, {{"RANK", "two"}})),
            "RANK=two: a number of 0 .. 1048576 is expected");
  EXPECT_EQ(errorOf(with(kHand, {{"WORLD_SIZE", "-8"}})),
            "WORLD_SIZE=-8: a number of 0 .. 1048576 is expected");
  EXPECT_EQ(errorOf(with(kHand, {{"RANK", "8"}})), "RANK=8, but WORLD_SIZE=8: ranks count from 0");
  EXPECT_EQ(errorOf(with(kHand, {{"LOCAL_RANK", "6"}})),
            "LOCAL_RANK=6, but RANK=5: a rank cannot come later on its host than among all");
  EXPECT_EQ(errorOf(with(kHand, {{"MASTER_PORT", "66000"}})),
            "MASTER_PORT=66000: a number of 0 .. 65535 is expected");
  EXPECT_EQ(errorOf({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
            "RANK and WORLD_SIZE are set, MASTER_ADDR is not: where is rank 0?");
  EXPECT_EQ(errorOf({{"WORLD_SIZE", "2"}}),
            "of the launcher's variables RANK and WORLD_SIZE one is set, the other one is not");
  EXPECT_EQ(errorOf(with(kSlurm, {{"SLURM_STEP_NODELIST", "gpu-["}})),
            "not a Slurm host list: gpu-[");
}

TEST(Environment, FirstHost) {
  EXPECT_EQ(firstHost("login"), "login");
  EXPECT_EQ(firstHost("a,b"), "a");
  EXPECT_EQ(firstHost("gpu-[003-007,9],login"), "gpu-003");
  EXPECT_EQ(firstHost("rack[2,4]n[1-8].x"), "rack2n1.x");
  for (const char *none : {"", ",a", "a[", "a[]", "a[-3]"})
    EXPECT_THROW(firstHost(none), std::exception) << none;
}

} // namespace
} // namespace partita_rt::processes
