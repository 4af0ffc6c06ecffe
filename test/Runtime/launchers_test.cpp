// Who has launched a process, over tables of environments.

#include "partita_rt/launchers.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace partita_rt {
namespace {

using Variables = std::map<std::string, std::string>;

Variables operator+(Variables some, const Variables &others) {
  for (const auto &[name, value] : others)
    some[name] = value;
  return some;
}

Launched launchedIn(const Variables &variables, bool asksMpi, int programRanks) {
  return whoLaunched(asksMpi, programRanks, [&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables torchrun(const char *rank, const char *ranks) {
  return {{"RANK", rank}, {"WORLD_SIZE", ranks}};
}
Variables mpirun(const char *rank, const char *ranks) {
  return {{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", ranks}, {"PMIX_RANK", rank}};
}
Variables pmi(const char *rank, const char *ranks) {
  return {{"PMI_RANK", rank}, {"PMI_SIZE", ranks}};
}
Variables srun(const char *rank, const char *ranks) {
  return {{"SLURM_PROCID", rank}, {"SLURM_STEP_NUM_TASKS", ranks}};
}
const Variables kPmixRank3{{"PMIX_RANK", "3"}};
const Variables kElastic{{"TORCHELASTIC_RUN_ID", "x"}};
const Variables kPartita{{"PARTITA_RUN_ID", "x"}};
const Variables kAddress{{"MASTER_ADDR", "a"}};
const Variables kBatchScript{{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "1"}};

struct Row {
  Variables variables;
  const Launcher *launcher;
  int rank, ranks;
  bool isRank;
};

void expectRows(const std::vector<Row> &rows, bool asksMpi, int programRanks) {
  for (size_t i = 0; i < rows.size(); ++i) {
    Launched launched = launchedIn(rows[i].variables, asksMpi, programRanks);
    EXPECT_EQ(launched.launcher, rows[i].launcher) << i;
    EXPECT_EQ(launched.rank, rows[i].rank) << i;
    EXPECT_EQ(launched.ranks, rows[i].ranks) << i;
    EXPECT_EQ(launched.isRank(), rows[i].isRank) << i;
    EXPECT_EQ(launched.problem, "") << i;
  }
}

TEST(Launchers, OneLauncher) {
  std::vector<Row> rows{
      {{}, nullptr, 0, 1, false},
      {kBatchScript, nullptr, 0, 1, false},
      {torchrun("5", "8"), &kTorchrun, 5, 8, true},
      {torchrun("5", "8") + kElastic, &kTorchrun, 5, 8, true},
      {torchrun("5", "8") + kPartita, &kPartitaRun, 5, 8, true},
      {mpirun("3", "4"), &kOpenMpi, 3, 4, true},
      {srun("9", "16"), &kSlurm, 9, 16, true},
      // Other systems set these alone.
      {{{"RANK", "1"}}, nullptr, 0, 1, false},
      {{{"WORLD_SIZE", "1"}}, nullptr, 0, 1, false},
      {{{"RANK", ""}, {"WORLD_SIZE", ""}}, nullptr, 0, 1, false},
      // One process: a supervisor or a shell, whose ranks are still to be started.
      {torchrun("0", "1"), &kTorchrun, 0, 1, false},
      {srun("0", "1"), nullptr, 0, 1, false},
      {mpirun("0", "1"), &kOpenMpi, 0, 1, true}, // its server would end the job with this process
  };
  expectRows(rows, false, 0);
  expectRows(rows, true, 0);
  expectRows(rows, true, 2);
}

TEST(Launchers, OnlyMpiKnowsThem) {
  std::vector<Row> rows{
      {pmi("3", "4"), &kPmi, 3, 4, true},
      {kPmixRank3, &kPmix, 3, 0, true},
      {kPmixRank3 + srun("3", "4"), &kPmix, 3, 4, true}, // srun --mpi=pmix
      // Slurm offers PMI to steps of one task too.
      {pmi("0", "1"), nullptr, 0, 1, false},
      {{{"PMIX_RANK", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}},
       nullptr,
       0,
       1,
       false},
  };
  expectRows(rows, true, 0);
  expectRows(rows, true, 4);
  expectRows(
      {{pmi("3", "4"), nullptr, 0, 1, false}, {kPmixRank3 + srun("3", "4"), &kSlurm, 3, 4, true}},
      false, 4);
}

TEST(Launchers, OneWithinTheOther) {
  // srun starts torchrun on each node, or a script sets torchrun's variables from Slurm's.
  Variables nested = kPmixRank3 + srun("3", "4") + torchrun("5", "8");
  expectRows({{nested + kElastic, &kTorchrun, 5, 8, true}}, true, 0);
  expectRows({{nested + kElastic, &kTorchrun, 5, 8, true}}, true, 8);
  expectRows({{nested, &kPmix, 3, 4, true}}, true, 4); // left over from somewhere
  expectRows({{kPmixRank3 + srun("3", "4") + torchrun("3", "4"), &kTorchrun, 3, 4, true}}, true, 4);
  // mpirun and torchrun: whose processes are as many as the program's ranks.
  Variables both = mpirun("1", "2") + torchrun("2", "3") + kElastic;
  expectRows({{both, &kOpenMpi, 1, 2, true}}, true, 2);
  expectRows({{both, &kTorchrun, 2, 3, true}}, true, 3);
  expectRows({{both, &kTorchrun, 2, 3, true}}, true, 4);
  expectRows({{both, &kTorchrun, 2, 3, true}}, true, 0);
  expectRows({{both, &kTorchrun, 2, 3, true}}, false, 2);
  expectRows({{mpirun("1", "2") + torchrun("2", "3"), &kOpenMpi, 1, 2, true}}, true, 0);
  expectRows({{mpirun("1", "2") + torchrun("0", "1"), &kOpenMpi, 1, 2, true}}, true, 1);
  // Ranks by hand in a shell that srun has started.
  expectRows({{srun("0", "1") + torchrun("1", "2"), &kTorchrun, 1, 2, true}}, true, 2);
}

TEST(Launchers, LocalRank) {
  EXPECT_EQ(launchedIn(torchrun("5", "8"), false, 0).localRank, -1);
  EXPECT_EQ(launchedIn(torchrun("5", "8") + Variables{{"LOCAL_RANK", "1"}}, false, 0).localRank, 1);
  EXPECT_EQ(launchedIn(srun("5", "8") + Variables{{"SLURM_LOCALID", "2"}}, false, 0).localRank, 2);
}

TEST(Launchers, Problems) {
  const char *half =
      "of the launcher's variables RANK and WORLD_SIZE one is set, the other one is not";
  const std::vector<std::pair<Variables, std::string>> rows{
      {{{"WORLD_SIZE", "2"}}, half},
      {Variables{{"RANK", "0"}} + kAddress, half},
      {torchrun("two", "8"), "RANK=two: a number of 0 .. 1048576 is expected"},
      {torchrun("2", "-8"), "WORLD_SIZE=-8: a number of 0 .. 1048576 is expected"},
      {torchrun("1", "1"), "RANK=1, but WORLD_SIZE=1: ranks count from 0"},
      {torchrun("5", "8") + Variables{{"LOCAL_RANK", "6"}},
       "LOCAL_RANK=6, but RANK=5: a rank cannot come later on its host than among all"},
      {torchrun("5", "8") + Variables{{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "1"}},
       "LOCAL_WORLD_SIZE=1, but LOCAL_RANK=1 and WORLD_SIZE=8"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}}, "the launcher's variable OMPI_COMM_WORLD_SIZE is not set"},
      {srun("9", "16") + torchrun("5", "8"),
       "RANK=5 and WORLD_SIZE=8 contradict SLURM_PROCID=9 and SLURM_STEP_NUM_TASKS=16: which "
       "launcher has started this process?"},
  };
  for (const auto &[variables, problem] : rows)
    EXPECT_EQ(launchedIn(variables, false, 0).problem, problem);
}

} // namespace
} // namespace partita_rt
