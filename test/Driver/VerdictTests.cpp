//===- VerdictTests.cpp - when a supervisor starts a run again --------------------------------===//

#include "runtime/include/partita_rt/exit_status.h"
#include "tools/partita/Run/Verdict.h"
#include <gtest/gtest.h>

using namespace partita::tool;

namespace {

constexpr int kRefused = partita_rt::kRefused, kTraining = partita_rt::kFailedWhileTraining;

struct Row {
  const char *what;
  StartFacts facts;
  Verdict verdict;
};

using Flag = bool StartFacts::*;
void set(StartFacts &facts, Flag flag) { facts.*flag = true; }
void set(StartFacts &facts, RanksSaid said) { facts.said = said; }
void set(StartFacts &facts, Progress progress) { facts.progress = progress; }

/// Facts of a start with this status; then some are set.
template <typename... Flags> StartFacts facts(int status, Flags... flags) {
  StartFacts result;
  result.status = status;
  (set(result, flags), ...);
  return result;
}

constexpr RanksSaid kTaken = RanksSaid::FolderTaken, kUnsaved = RanksSaid::Unsaved,
                    kNone = RanksSaid::NeverRan, kSays = RanksSaid::Refused;
constexpr Flag kAsked = &StartFacts::askedToEnd, kCause = &StartFacts::hasCause,
               kUnexplained = &StartFacts::isUnexplained, kTrains = &StartFacts::hasTrained,
               kAgain = &StartFacts::failedAgain, kRestart = &StartFacts::wasRestarted,
               kTrained = &StartFacts::trainedBefore, kFewer = &StartFacts::hasFewer,
               kHeld = &StartFacts::outlivedWait, kLauncher = &StartFacts::isLauncher,
               kDone = &StartFacts::hasDone, kLost = &StartFacts::hasLost,
               kError = &StartFacts::hasError, kAboutToEnd = &StartFacts::hasAsked,
               kSaved = &StartFacts::hasSaved, kInterrupted = &StartFacts::interrupted;
constexpr Progress kPart = Progress::Incomplete, kAll = Progress::Complete;

TEST(Verdict, Table) {
  const Row rows[] = {
      {"done", facts(0), Verdict::Ended},
      {"done at last", facts(0, kRestart, kTrained, kFewer, kTrains), Verdict::Ended},

      {"Ctrl-C", facts(0, kAsked), Verdict::AskedToEnd},
      {"a signal, and then it failed", facts(kTraining, kAsked, kCause, kTrains),
       Verdict::AskedToEnd},
      {"mpirun reports SIGTERM", facts(128 + SIGTERM), Verdict::AskedToEnd},
      {"the same of a restart", facts(128 + SIGTERM, kRestart, kTrained, kFewer),
       Verdict::AskedToEnd},

      {"srun ends the others after a rank's death", facts(128 + SIGTERM, kCause, kLauncher),
       Verdict::RestartNow},
      {"ranks that were asked to end, and then killed",
       facts(128 + SIGTERM, kCause, kLauncher, kAboutToEnd), Verdict::AskedToEnd},

      {"all is done, and its script fails", facts(1, kLauncher, kDone, kAll), Verdict::Complete},
      {"or is killed", facts(kTraining, kLauncher, kDone, kAll, kCause), Verdict::Complete},
      {"a signal asked the supervisor to end",
       facts(kTraining, kLauncher, kDone, kAll, kAsked, kInterrupted), Verdict::AskedToEnd},
      {"the ranks of another host are not done", facts(1, kLauncher, kDone, kPart, kTrains),
       Verdict::RestartNow},

      {"kill -9 of a rank", facts(kTraining, kCause), Verdict::RestartNow},
      {"kill -9 of the only process", facts(1, kCause), Verdict::RestartNow},
      {"mpirun reports SIGKILL", facts(128 + SIGKILL), Verdict::RestartNow},
      {"a rank fails in a step", facts(kTraining), Verdict::RestartNow},
      {"and again", facts(kTraining, kRestart, kTrained, kFewer), Verdict::RestartNow},
      {"torchrun hides the status", facts(1, kTrains, kUnexplained), Verdict::RestartNow},
      {"a launcher ends early", facts(kTraining, kCause), Verdict::RestartNow},

      {"a loss is NaN again", facts(kTraining, kAgain, kRestart, kTrained, kTrains),
       Verdict::Final},
      {"in the first step after the checkpoint",
       facts(kRefused, kAgain, kRestart, kTrained, kFewer), Verdict::Final},
      {"torchrun hides that status", facts(1, kAgain, kRestart, kUnexplained, kTrains),
       Verdict::Final},
      {"so does a script", facts(kTraining, kAgain, kRestart, kCause), Verdict::Final},
      {"a signal comes first", facts(kTraining, kAgain, kRestart, kAsked), Verdict::AskedToEnd},

      {"another run has the folder", facts(kRefused, kTaken), Verdict::Final},
      {"the last start's lock is kept for a while",
       facts(kRefused, kTaken, kRestart, kTrained, kFewer, kHeld), Verdict::RestartLater},
      {"has it after a restart", facts(1, kTaken, kRestart, kTrained, kUnexplained, kFewer),
       Verdict::Final},
      {"the disk is full at the end", facts(kTraining, kUnsaved, kTrains), Verdict::RestartLater},

      {"a wrong option", facts(kRefused), Verdict::Final},
      {"fewer ranks do not mend it", facts(kRefused, kFewer), Verdict::Final},
      {"a restart of what never trained", facts(kRefused, kRestart), Verdict::Final},

      {"mpirun knows no such host", facts(1, kUnexplained, kNone), Verdict::Final},
      {"its ssh knows none", facts(255, kUnexplained, kNone), Verdict::Final},
      {"mpirun knows no such command", facts(132, kUnexplained, kNone), Verdict::Final},
      {"its host is away for a while", facts(1, kUnexplained, kNone, kRestart, kTrained),
       Verdict::RestartLater},
      {"a launcher starts nothing", facts(kRefused, kUnexplained, kNone), Verdict::Final},
      {"the host where mpirun's only ranks were", facts(kTraining, kNone), Verdict::RestartNow},

      {"a restart is refused", facts(kRefused, kRestart, kTrained), Verdict::RestartLater},
      {"torchrun, before the first step", facts(1, kUnexplained), Verdict::RestartLater},
      {"a disk may be back in a moment", facts(kRefused, kRestart, kTrained, kFewer),
       Verdict::RestartLater},
      {"before anything was saved", facts(1, kRestart, kUnexplained, kFewer),
       Verdict::RestartLater},
  };
  for (const Row &row : rows)
    EXPECT_EQ(int(verdictOf(row.facts)), int(row.verdict)) << row.what;
}

TEST(Verdict, StatusZeroOfALauncherHidesWhatRanksSay) {
  struct {
    const char *what;
    StartFacts facts;
    Hidden hidden;
    Verdict verdict;
  } rows[] = {
      {"done", facts(0, kLauncher, kDone, kAll), Hidden::Nothing, Verdict::Ended},
      {"done, without checkpoints", facts(0, kLauncher, kDone), Hidden::Nothing, Verdict::Ended},
      {"done on other hosts", facts(0, kLauncher, kNone, kAll), Hidden::Nothing, Verdict::Ended},
      {"a wrong option", facts(0, kLauncher, kSays), Hidden::Refusal, Verdict::Final},
      {"a full disk", facts(0, kLauncher, kUnsaved, kTrains), Hidden::Unsaved,
       Verdict::RestartLater},
      {"the command 'true'", facts(0, kLauncher, kNone, kPart), Hidden::NoRank, Verdict::Final},
      {"on other hosts, too early", facts(0, kLauncher, kNone, kPart, kSaved), Hidden::Incomplete,
       Verdict::RestartNow},
      {"a rank has died", facts(0, kLauncher, kPart, kLost, kTrains), Hidden::Incomplete,
       Verdict::RestartNow},
      {"the same without checkpoints", facts(0, kLauncher, kLost, kTrains), Hidden::Failure,
       Verdict::RestartNow},
      {"parameters cannot be written at last", facts(0, kLauncher, kAll, kTrains, kError),
       Hidden::Failure, Verdict::RestartNow},
      {"'true' without checkpoints", facts(0, kLauncher, kNone), Hidden::Unconfirmed,
       Verdict::Ended},
      {"a signal to the supervisor", facts(0, kLauncher, kPart, kInterrupted, kAsked),
       Hidden::Nothing, Verdict::AskedToEnd},
      {"no launcher", facts(0, kTrains), Hidden::Nothing, Verdict::Ended},
  };
  for (auto &row : rows) {
    EXPECT_EQ(int(hiddenBy(row.facts)), int(row.hidden)) << row.what;
    expose(row.facts, row.hidden);
    EXPECT_EQ(int(verdictOf(row.facts)), int(row.verdict)) << row.what;
  }
}

TEST(Verdict, StatusOfTheSupervisor) {
  struct {
    const char *what;
    Verdict verdict;
    StartFacts facts;
    bool hasTrained;
    int status;
  } rows[] = {
      {"done", Verdict::Ended, facts(0), true, 0},
      {"refused", Verdict::Final, facts(kRefused), false, kRefused},
      {"no such command", Verdict::Final, facts(127, kLauncher), false, 127},
      {"its script fails", Verdict::Complete, facts(2), true, 2},
      {"it would ask for another run", Verdict::Complete, facts(kTraining), true, 0},
      {"it was killed", Verdict::Complete, facts(128 + SIGKILL), true, 0},
      {"torchrun, of a rank killed at the end", Verdict::Complete, facts(1, kLost), true, 0},
      {"NaN again", Verdict::Final, facts(kTraining, kAgain), true, kRefused},
      {"no restart is left: torchrun", Verdict::RestartNow, facts(1), true, kTraining},
      {"mpirun, of a killed rank", Verdict::RestartNow, facts(128 + SIGKILL), true, kTraining},
      {"mpirun, before a step", Verdict::RestartNow, facts(128 + SIGKILL), false, 128 + SIGKILL},
      {"a full disk", Verdict::Final, facts(kRefused, kUnsaved), false, kTraining},
      {"a signal", Verdict::AskedToEnd, facts(128 + SIGTERM), true, 128 + SIGTERM},
  };
  for (auto &row : rows)
    EXPECT_EQ(statusOf(row.verdict, row.facts, row.hasTrained), row.status) << row.what;
}

TEST(Verdict, RanksAreLostForGoodIfAnotherStartIsRefused) {
  StartFacts refused = facts(kRefused, kRestart, kTrained, kFewer);
  refused.stepless = 1;
  EXPECT_EQ(verdictOf(refused), Verdict::RestartLater);
  refused.stepless = 2; // a refusal before, or a crash
  EXPECT_EQ(verdictOf(refused), Verdict::RestartWithFewer);
}

/// A data file that is away for some seconds must not cost ranks, which may never come back.
TEST(Verdict, RanksAreNotLostAtOnceIfOneSaysWhatIsMissing) {
  StartFacts refused = facts(kRefused, kRestart, kTrained, kFewer, kSays);
  for (refused.stepless = 1; refused.stepless < kMostStepless; ++refused.stepless)
    EXPECT_EQ(verdictOf(refused), Verdict::RestartLater) << refused.stepless;
  EXPECT_EQ(verdictOf(refused), Verdict::RestartWithFewer); // its GPU, perhaps
}

TEST(Verdict, CrashesInSetUpArePausedBetween) {
  for (StartFacts crashed :
       {facts(kTraining, kCause), facts(128 + SIGSEGV), facts(128 + SIGKILL, kRestart, kTrained)}) {
    crashed.stepless = 1;
    EXPECT_EQ(verdictOf(crashed), Verdict::RestartNow);
    for (crashed.stepless = 2; crashed.stepless < 100; ++crashed.stepless)
      EXPECT_EQ(verdictOf(crashed), Verdict::RestartLater);
  }
}

/// Such as those of a host that kills a rank in each set-up, whatever its launcher says.
TEST(Verdict, RanksAreLostForGoodIfTwoStartsCrashInSetUp) {
  for (StartFacts crashed :
       {facts(kTraining, kRestart, kTrained, kFewer), facts(128 + SIGKILL, kRestart, kFewer),
        facts(1, kCause, kRestart, kFewer, kUnexplained)}) {
    crashed.stepless = 1;
    EXPECT_EQ(verdictOf(crashed), Verdict::RestartNow);
    crashed.stepless = 2;
    EXPECT_EQ(verdictOf(crashed), Verdict::RestartWithFewer);
  }
}

TEST(Verdict, PausesGrowAndHaveALimit) {
  for (auto [pause, seconds] :
       {std::pair(0, 0U), {1, 1U}, {2, 2U}, {5, 16U}, {6, 16U}, {1000, 16U}})
    EXPECT_EQ(secondsBefore(pause), seconds) << pause;
}

TEST(Verdict, RefusalsInSuccessionHaveALimit) {
  for (StartFacts refused :
       {facts(kRefused, kRestart, kTrained), facts(kTraining, kUnsaved, kRestart, kTrained),
        facts(kRefused, kTaken, kRestart, kHeld)}) {
    refused.pauses = 1;
    while (verdictOf(refused) == Verdict::RestartLater && refused.pauses < 100)
      ++refused.pauses;
    EXPECT_EQ(refused.pauses, kMostStepless);
    EXPECT_EQ(verdictOf(refused), Verdict::Final);
  }
}

TEST(Verdict, WhichOnesRestart) {
  for (Verdict verdict : {Verdict::RestartNow, Verdict::RestartLater, Verdict::RestartWithFewer})
    EXPECT_TRUE(startsAgain(verdict));
  for (Verdict verdict : {Verdict::Ended, Verdict::Complete, Verdict::AskedToEnd, Verdict::Final})
    EXPECT_FALSE(startsAgain(verdict));
}

} // namespace
