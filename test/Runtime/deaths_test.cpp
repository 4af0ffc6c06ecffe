// What a rank says of the others' ends, when a launcher's signal ends it.

#include "common/run/interruption.h"
#include "cpu/watch/deaths.h"

#include <csignal>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace partita_rt;

namespace {

/// A process that has ended and still has its number.
pid_t endedProcess() {
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  siginfo_t info;
  waitid(P_PID, id_t(child), &info, WEXITED | WNOWAIT);
  return child;
}

/// Rank 0 of three; rank 2 has been killed in step 4, and rank 0 receives SIGTERM.
[[noreturn]] void endBySigterm(bool rankOneFailed) {
  constexpr int kRanks = 3;
  static RankPosition positions[kRanks];
  static FlightRing rings[kRanks];
  std::vector<DeathWatch::Watched> watched;
  for (int r = 0; r < kRanks; ++r)
    watched.push_back({r, "rank " + std::to_string(r), &positions[r], &rings[r]});
  positions[2].process = endedProcess();
  positions[2].phase = Phase::Step;
  positions[2].step = 4;
  if (rankOneFailed)
    DeathWatch(1, watched).endWithError();
  DeathWatch watch(0, watched);
  handleSignals("gpt2", /*isFirst=*/true);
  raise(SIGTERM);
  _exit(0);
}

TEST(DeathsDeathTest, ADeadRankIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(endBySigterm(false), testing::KilledBySignal(SIGTERM),
              "^gpt2: ended by SIGTERM after rank 2 died; it was in step 4 \\(data\\)\n$");
}

// A launcher ends the ranks that are left, some of them by SIGKILL: those are not why the run ends.
TEST(DeathsDeathTest, NoneIsNamedAfterAnErrorOfARank) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(endBySigterm(true), testing::KilledBySignal(SIGTERM), "^gpt2: ended by SIGTERM\n$");
}

} // namespace
