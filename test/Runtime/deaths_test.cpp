// What a rank says of the others' ends, when a launcher's signal ends it.

#include "common/run/interruption.h"
#include "common/start_marks.h"
#include "cpu/watch/deaths.h"
#include "partita_rt/exit_status.h"
#include "temporary_folder.h"

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <new>
#include <poll.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace partita_rt;

namespace {

/// Waits until a child has ended; it still has its number.
pid_t ended(pid_t child) {
  siginfo_t info;
  waitid(P_PID, id_t(child), &info, WEXITED | WNOWAIT);
  return child;
}

/// Three ranks of one node, in memory that processes share.
struct Node {
  static constexpr int kRanks = 3;
  struct Rank {
    RankPosition position;
    FlightRing flight;
  };
  Node()
      : ranks(static_cast<Rank *>(mmap(nullptr, kRanks * sizeof(Rank), PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    for (int r = 0; r < kRanks; ++r) {
      new (&ranks[r]) Rank();
      watched.push_back({r, "rank " + std::to_string(r), &ranks[r].position, &ranks[r].flight});
    }
  }
  /// Rank 2 is killed in step 4.
  void killRankTwo() const {
    pid_t child = fork();
    if (child == 0)
      _exit(0);
    ranks[2].position.process = ended(child);
    ranks[2].position.phase = Phase::Step;
    ranks[2].position.step = 4;
  }
  Rank *ranks;
  std::vector<DeathWatch::Watched> watched;
};

/// Rank 2 has been killed in step 4, and rank 0 receives SIGTERM, which it would defer otherwise.
[[noreturn]] void endBySigterm(bool rankOneFailed) {
  Node node;
  node.killRankTwo();
  if (rankOneFailed)
    DeathWatch(1, node.watched).endWithError();
  DeathWatch watch(0, node.watched);
  handleSignals("gpt2", /*isFirst=*/true);
  setCheckpointFolder("ck");
  SignalsWait waits;
  waits.begin();
  raise(SIGTERM);
  _exit(0);
}

TEST(DeathsDeathTest, ADeadRankIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(endBySigterm(false), testing::KilledBySignal(SIGTERM),
              "^gpt2: ended by SIGTERM after rank 2 died; it was in step 4 \\(data\\)\n$");
}

// Over TCP the thread that reads the connections reports the death, and ends the process: a little later than the signal comes.
TEST(DeathsDeathTest, AThreadMayReportIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [] {
    Node node;
    node.killRankTwo();
    DeathWatch watch(0, node.watched, /*areAll=*/true, DeathWatch::Reporter::Thread);
    handleSignals("gpt2", /*isFirst=*/true);
    std::thread reporter([main = pthread_self()] {
      pthread_kill(main, SIGTERM);
      usleep(100'000);
      (void)!write(STDERR_FILENO, "reported\n", 9);
      _exit(kFailedWhileTraining);
    });
    for (;;)
      pause();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kFailedWhileTraining), "^reported\n$");
}

// A launcher ends the ranks that are left, some of them by SIGKILL: those are not why the run ends.
TEST(DeathsDeathTest, NoneSaysMoreAfterAnErrorOfARank) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(endBySigterm(true), testing::KilledBySignal(SIGTERM), "^$");
}

// A rank of another node has failed, so the launcher sends all SIGTERM. Rank 1 defers it, as with --checkpoint, and is
// then killed.
TEST(DeathsDeathTest, NoneIsNamedThatTheLauncherHasKilled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [] {
    Node node;
    pid_t child = fork();
    if (child == 0) {
      (void)!freopen("/dev/null", "w", stderr);
      DeathWatch watch(1, node.watched);
      handleSignals("gpt2", /*isFirst=*/false);
      setCheckpointFolder("ck");
      SignalsWait waits;
      waits.begin();
      raise(SIGTERM);
      node.ranks[1].position.beats = uint64_t(notedSignal());
      for (;;)
        pause();
    }
    while (node.ranks[1].position.beats != SIGTERM)
      usleep(1000);
    kill(child, SIGKILL);
    ended(child);
    DeathWatch watch(0, node.watched);
    handleSignals("gpt2", /*isFirst=*/true);
    raise(SIGTERM);
    _exit(0);
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGTERM), "^gpt2: ended by SIGTERM\n$");
}

// Nor is a rank that is killed after another one of the node has said why all end, but the dead one stays known.
TEST(DeathsDeathTest, TheFirstDecidesWhoDied) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [] {
    Node node;
    node.killRankTwo();
    pid_t child = fork();
    if (child == 0) {
      (void)!freopen("/dev/null", "w", stderr);
      DeathWatch watch(1, node.watched);
      handleSignals("gpt2", /*isFirst=*/false);
      raise(SIGTERM);
    }
    ended(child);
    node.ranks[0].position.isDeathPrinted = false; // as if it had been killed before
    DeathWatch watch(0, node.watched);
    handleSignals("gpt2", /*isFirst=*/true);
    raise(SIGTERM);
    _exit(0);
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGTERM),
              "^gpt2: ended by SIGTERM after rank 2 died; it was in step 4 \\(data\\)\n$");
}

using Handlers = InTemporaryFolder;

// A launcher kills ranks some milliseconds after SIGTERM. Here the flight recorder of the dead rank is a pipe that
// nobody reads, so that it is never written.
TEST_F(Handlers, SayWhoDiedBeforeTheyWriteFiles) {
  ASSERT_EQ(mkfifo((folder + "/rank-2.jsonl").c_str(), 0600), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    Node node;
    node.killRankTwo();
    setFlightFolder(folder, MakeParents::Never);
    DeathWatch watch(0, node.watched);
    handleSignals("gpt2", /*isFirst=*/true);
    raise(SIGTERM);
    _exit(0);
  }
  close(ends[1]);
  pollfd said{ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&said, 1, 10'000), 1);
  kill(child, SIGKILL);
  char text[512] = {};
  EXPECT_GT(read(ends[0], text, sizeof(text) - 1), 0);
  EXPECT_NE(std::string(text).find("gpt2: ended by SIGTERM after rank 2 died"), std::string::npos)
      << text;
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  close(ends[0]);
}

TEST(HandlersDeathTest, DoNotInterruptEachOther) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [] {
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
      std::signal(number, SIG_DFL); // a shell's background job ignores some, and they stay ignored
    handleSignals("gpt2", /*isFirst=*/true);
    bool areBlocked = true;
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
      for (int other : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
        struct sigaction action;
        sigaction(number, nullptr, &action);
        areBlocked &= sigismember(&action.sa_mask, other) == 1;
      }
    std::exit(areBlocked ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

} // namespace
