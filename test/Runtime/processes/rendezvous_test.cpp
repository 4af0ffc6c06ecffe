// The rendezvous of ranks that are processes: they meet, and end together.

#include "common/watch/rank_position.h"
#include "forked_ranks.h"
#include "partita_rt/exit_status.h"
#include "processes/hub.h"
#include "processes/joining.h"
#include "processes/succession.h"

#include <gtest/gtest.h>

#include <csignal>
#include <regex>
#include <sys/time.h>

namespace partita_rt::processes {
namespace {

/// Expects that all ranks ended with `code` (except `except` and those that were killed), and that
/// one printed this message.
void expectEnd(const std::vector<Ended> &all, const std::string &message, int except = -1,
               int code = kRefused) {
  for (size_t r = 0; r < all.size(); ++r)
    if (int(r) != except && all[r].code != -SIGKILL) {
      EXPECT_EQ(all[r].code, code) << r << ": " << all[r].text;
    }
  EXPECT_EQ(textOf(all), "test: error: " + message + "\n");
}

std::string hostName() { return greetingOf({}, 0).peer.host; }
std::string nameOf(const Ended &rank, int number) {
  return "rank " + std::to_string(number) + " (host " + hostName() + ", process " +
         std::to_string(rank.process) + ")";
}

TEST(Rendezvous, GathersBroadcastsAndAgrees) {
  int port = freePort();
  auto all = runRanks(3, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 3, port), "test");
    EXPECT_EQ(ranks.localRank(), rank);
    EXPECT_TRUE(ranks.peers()[2].isBesideRankZero);
    std::string large(1 << 20, char('a' + rank));
    std::vector<std::string> texts = ranks.allGather(large, "letters");
    for (int r = 0; r < 3; ++r)
      EXPECT_EQ(texts[size_t(r)], std::string(1 << 20, char('a' + r)));
    EXPECT_EQ(ranks.broadcast(std::to_string(rank), "numbers", 2), "2");
    EXPECT_EQ(ranks.agree(rank ? "wrong on " + std::to_string(rank) : ""), "wrong on 1");
    EXPECT_EQ(ranks.agree(""), "");
    for (int i = 0; i < 100; ++i)
      ranks.barrier("the end");
    if (::testing::Test::HasFailure())
      throw std::runtime_error("failed");
  });
  for (const Ended &each : all)
    EXPECT_EQ(each.code, 0) << each.text;
}

/// The launcher's 1 and 2 are ranks 2 and 1, with their processes, connections and names.
TEST(Rendezvous, RanksOfAHostAreConsecutive) {
  int port = freePort();
  auto all = runRanks(4, [&](int launched) {
    setenv("PARTITA_RT_TRANSPORT", "dealt:2", 1);
    Rendezvous ranks(environmentOf(launched, 4, port), "test");
    EXPECT_EQ(ranks.launcherNumbers(), (std::vector<int>{0, 2, 1, 3}));
    EXPECT_EQ(ranks.peers()[size_t(ranks.rank())].process, int(getpid()));
    EXPECT_EQ(ranks.allGather(std::to_string(launched), "numbers"),
              (std::vector<std::string>{"0", "2", "1", "3"}));
    EXPECT_EQ(ranks.broadcast(std::to_string(launched), "one", 1), "2");
    if (::testing::Test::HasFailure())
      throw std::runtime_error("failed");
    if (ranks.rank() == 1)
      raise(SIGKILL);
    pause();
  });
  EXPECT_EQ(all[2].code, -SIGKILL);
  expectEnd(all, nameOf(all[2], 1) + " died", 2, kFailedWhileTraining);
}

TEST(Rendezvous, OneRankNeedsNobody) {
  Rendezvous ranks(LaunchEnvironment{});
  EXPECT_EQ(ranks.allGather("mine", "all"), std::vector<std::string>{"mine"});
  EXPECT_EQ(ranks.broadcast("mine", "one"), "mine");
  EXPECT_EQ(ranks.agree("wrong"), "wrong");
  EXPECT_EQ(ranks.localRank(), 0);
  auto all = runRanks(1, [](int) { Rendezvous(LaunchEnvironment{}, "test").fail("broken"); });
  expectEnd(all, "broken");
}

TEST(Rendezvous, AnotherNumberOfRanksEndsAll) {
  int port = freePort();
  auto all = runRanks(3, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, rank == 1 ? 2 : 3, port), "test");
    ranks.barrier("never");
  });
  expectEnd(all, nameOf(all[1], 1) + " was started as one of 2 ranks, rank 0 as one of 3");
}

TEST(Rendezvous, TwoProcessesOfOneRankEndAll) {
  int port = freePort();
  auto all = runRanks(
      3, [&](int rank) { Rendezvous ranks(environmentOf(rank == 2 ? 1 : rank, 3, port), "test"); });
  std::string text = textOf(all);
  EXPECT_NE(text.find("test: error: two processes were started as rank 1: host "),
            std::string::npos)
      << text;
  for (const Ended &each : all)
    EXPECT_EQ(each.code, 1);
}

TEST(Rendezvous, ARankThatDiesEndsAll) {
  for (bool inGather : {true, false}) {
    int port = freePort();
    auto all = runRanks(3, [&](int rank) {
      Rendezvous ranks(environmentOf(rank, 3, port), "test");
      ranks.barrier("before");
      if (rank == 2)
        raise(SIGKILL);
      if (inGather)
        ranks.barrier("after");
      pause(); // like a rank that waits for its GPU
    });
    EXPECT_EQ(all[2].code, -SIGKILL);
    expectEnd(all, nameOf(all[2], 2) + " died", 2, kFailedWhileTraining);
  }
}

TEST(Rendezvous, Rank0ThatDiesEndsAll) {
  int port = freePort();
  auto all = runRanks(4, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 4, port), "test");
    ranks.barrier("before");
    if (rank == 0)
      raise(SIGKILL);
    pause();
  });
  expectEnd(all, nameOf(all[0], 0) + " died", 0, kFailedWhileTraining);
}

/// Ranks that wait for one second.
class Patience : public testing::Test {
protected:
  Patience() { setenv("PARTITA_RT_TIMEOUT", "1", 1); }
  ~Patience() override { unsetenv("PARTITA_RT_TIMEOUT"); }
};

TEST_F(Patience, Rank0ThatHangsEndsAll) {
  int port = freePort();
  auto all = runRanks(4, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 4, port), "test");
    ranks.barrier("before");
    if (rank == 0)
      raise(SIGSTOP);
    if (rank == 3)
      ranks.barrier("after");
    pause();
  });
  EXPECT_EQ(all[0].code, -SIGKILL);
  for (int rank : {1, 2, 3})
    EXPECT_EQ(all[size_t(rank)].code, kFailedWhileTraining);
  EXPECT_EQ(std::regex_replace(textOf(all), std::regex("for [0-9.]+ s"), "for S s"),
            "test: error: " + nameOf(all[0], 0) +
                " has stopped: no heartbeat from its process for S s\n");
}

/// Runs three ranks that move, but for what `body` does first. Returns their output.
std::string runPositions(Phase phase,
                         const std::function<void(int rank, Rendezvous &ranks)> &body) {
  int port = freePort();
  return textOf(runRanks(3, [&](int rank) {
    RankPosition position;
    Rendezvous ranks(environmentOf(rank, 3, port), "test");
    position.phase = phase;
    position.step = 7;
    ranks.setPosition(position);
    ranks.barrier("before");
    usleep(300'000); // all have sent a heartbeat
    body(rank, ranks);
    for (;; position.move())
      usleep(10'000);
  }));
}

TEST_F(Patience, ARankThatStopsIsNamedWhereverItIs) {
  for (int stops : {0, 1, 2}) {
    std::string text = runPositions(Phase::Step, [&](int rank, Rendezvous &) {
      if (rank == stops)
        raise(SIGSTOP);
    });
    EXPECT_EQ(text.find("test: error: rank " + std::to_string(stops) + " (host "), 0u) << text;
    EXPECT_NE(text.find(") has stopped: no heartbeat from its process for "), std::string::npos)
        << text;
    EXPECT_EQ(text.substr(text.find(" s; ")), " s; it was last seen in step 7 (data)\n") << text;
  }
}

TEST_F(Patience, Rank0ThatStopsIsNamedWithARankThatWaitsForIt) {
  std::string text = runPositions(Phase::Step, [&](int rank, Rendezvous &ranks) {
    if (rank == 0)
      raise(SIGSTOP);
    if (rank == 1)
      ranks.barrier("after");
  });
  std::regex expected(
      "test: error: rank 0 .*; it was last seen in step 7 \\(data\\); rank 1 \\(host .*, process "
      "\\d+\\) waits in a gather of all ranks: after\n");
  EXPECT_TRUE(std::regex_match(text, expected)) << text;
}

TEST_F(Patience, ARankThatDiesIsNamedWithItsPositionAndWhoWaits) {
  for (int dies : {0, 2}) {
    std::string text = runPositions(Phase::Step, [&](int rank, Rendezvous &ranks) {
      if (rank == 1)
        ranks.barrier("after");
      usleep(200'000);
      if (rank == dies)
        raise(SIGKILL);
    });
    std::regex expected(
        "test: error: rank " + std::to_string(dies) +
        " \\(host .*, process \\d+\\) died; it was last seen, 0\\.\\d s before, in step 7 "
        "\\(data\\); rank 1 \\(host .*, process \\d+\\) waits in a gather of all ranks: after\n");
    EXPECT_TRUE(std::regex_match(text, expected)) << text;
  }
}

TEST_F(Patience, ARankThatDoesNotGetOnIsNamed) {
  std::string text = runPositions(Phase::Step, [](int rank, Rendezvous &) {
    if (rank == 2)
      pause();
  });
  EXPECT_EQ(text.find("test: error: rank 2 (host "), 0u) << text;
  EXPECT_NE(text.find(") is stuck: its process lives, but it has not moved for 1."),
            std::string::npos)
      << text;
}

/// A rank that reads its weights for longer than the time-out, and others that wait for it.
TEST_F(Patience, FilesTakeLong) {
  std::string text = runPositions(Phase::SetUp, [](int rank, Rendezvous &ranks) {
    if (rank == 2)
      usleep(2'500'000);
    ranks.barrier("the start of training");
    _exit(0); // without a goodbye: this ends the others, if they have not ended
  });
  EXPECT_EQ(text.find("has stopped"), std::string::npos) << text;
  EXPECT_EQ(text.find("stuck"), std::string::npos) << text;
}

/// The lowest live rank prints what another one has reported.
TEST_F(Patience, Rank0ThatHangsAsARankReports) {
  int port = freePort();
  auto all = runRanks(4, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 4, port), "test");
    ranks.barrier("before");
    if (rank < 2)
      raise(SIGSTOP);
    if (rank == 3)
      ranks.report(Cause::Timeout, "all_reduce #4 is not complete", "#4");
    pause();
  });
  EXPECT_EQ(all[1].code, -SIGKILL);
  expectEnd(all, "rank 3: all_reduce #4 is not complete; " + nameOf(all[0], 0) + " does not answer",
            -1, kFailedWhileTraining);
}

/// If rank 0 resumes after all, ranks that have ended tell it so before it sees that they have.
TEST(Rendezvous, Rank0ThatComesBackSaysNothing) {
  std::vector<Frame> sent;
  Hub hub(std::vector<Peer>(3), 1, [&](int rank, const Frame &frame) {
    if (rank == 0)
      sent.push_back(frame);
  });
  auto now = Clock::now();
  hub.closed(1, now);
  hub.handle(2, {FrameKind::Over, 0, ""}, now);
  hub.closed(2, now);
  hub.tick(now + std::chrono::seconds(1));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].kind, FrameKind::EndByLostRank);
  EXPECT_EQ(sent[0].number, kNoRank);
}

/// A rank that another one tells of the loss ends as if it had found that itself.
TEST(Rendezvous, ARankThatIsToldOfALossEndsByIt) {
  int port = freePort();
  auto all = runRanks(3, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 3, port), "test");
    ranks.barrier("before");
    std::string run = environmentOf(rank, 3, port).run;
    if (rank == 1)
      tellOver(ranks.peers(), 1, run); // as a late rank of an earlier start would
    usleep(300'000);
    ranks.barrier("after");
    if (rank == 2)
      std::fprintf(stderr, "lives\n");
    ranks.barrier("said");
    if (rank == 1)
      tellOver(ranks.peers(), 1, startName(run, ranks.peers()));
    pause();
  });
  EXPECT_EQ(all[2].text.substr(0, 6), "lives\n");
  EXPECT_EQ(all[2].code, kFailedWhileTraining);
}

/// Expects that all of three ranks ended with code 1, and that one printed a line with these words.
void expectOneLine(const std::vector<Ended> &all, const std::string &words) {
  std::string text = textOf(all);
  EXPECT_NE(text.find(words), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
  for (const Ended &each : all)
    EXPECT_TRUE(each.code == 1 || each.code == -SIGKILL) << each.code;
}

TEST_F(Patience, Rank0ThatDoesNotComeEndsAll) {
  int port = freePort();
  auto all = runRanks(3, [&](int rank) {
    usleep(100'000 * useconds_t(rank));
    Rendezvous ranks(environmentOf(rank + 1, 4, port), "test");
  });
  expectOneLine(all, " has not found rank 0 at 127.0.0.1:" + std::to_string(port) +
                         " within 1 s: Connection refused\n");
}

/// Rank 1 has been accepted by then; rank 2 arrives later.
TEST_F(Patience, Rank0ThatHangsAsRanksMeetEndsAll) {
  int port = freePort();
  auto all = runRanks(3, [&](int rank) {
    if (rank == 0) {
      struct sigaction stop{};
      stop.sa_handler = [](int) { raise(SIGSTOP); };
      sigaction(SIGALRM, &stop, nullptr);
      itimerval soon{{}, {0, 400'000}};
      setitimer(ITIMER_REAL, &soon, nullptr);
    }
    if (rank == 2)
      usleep(800'000);
    Rendezvous ranks(environmentOf(rank, 3, port), "test");
  });
  expectOneLine(all, nameOf(all[1], 1) + " has not heard of rank 0 at 127.0.0.1:" +
                         std::to_string(port) + " for 1 s: not all ranks had come\n");
}

TEST_F(Patience, AHostThatIsNoneEndsAll) {
  int port = freePort();
  auto all = runRanks(3, [&](int rank) {
    LaunchEnvironment environment = environmentOf(rank, 3, port);
    environment.address = "no host";
    Rendezvous ranks(environment, "test");
  });
  expectOneLine(all, " cannot meet the others at no host: ");
}

TEST(Rendezvous, AFailureEndsAllAndTheLowestRanksCounts) {
  int port = freePort();
  auto all = runRanks(3, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 3, port), "test");
    ranks.setAbort([] { std::fprintf(stderr, "-"); });
    ranks.barrier("before");
    if (rank > 0)
      ranks.fail("out of memory");
    pause();
  });
  for (const Ended &each : all)
    EXPECT_EQ(each.code, 1);
  EXPECT_EQ(textOf(all), "test: error: rank 1: out of memory\n---");
}

/// Of several reasons the root cause counts, whoever reports first.
TEST(Rendezvous, AReportAsksAllRanks) {
  int port = freePort();
  auto all = runRanks(3, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 3, port), "test");
    ranks.setAnswer([&](const std::string &question) {
      return rank == 1 ? "has not reached " + question : "";
    });
    ranks.barrier("before");
    if (rank == 0)
      ranks.report(Cause::Sequel, "NCCL: remote process exited", "");
    if (rank == 2)
      ranks.report(Cause::Timeout, "waited 1 s", "#4");
    pause();
  });
  expectEnd(all, "rank 2: waited 1 s; " + nameOf(all[1], 1) + " has not reached #4");
}

TEST(Rendezvous, RanksThatDifferOrLeaveFail) {
  int port = freePort();
  auto all = runRanks(2, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 2, port), "test");
    ranks.barrier("start");
    if (rank == 1)
      usleep(50'000);
    ranks.barrier(rank ? "the kinds of GPUs" : "NCCL's ids");
  });
  expectEnd(all, "rank 1: the ranks differ: rank 1 is at the kinds of GPUs, rank 0 at NCCL's ids");
  port = freePort();
  all = runRanks(2, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 2, port), "test");
    if (rank == 0)
      ranks.barrier("NCCL's ids");
  });
  expectEnd(all, "rank 0: waits at NCCL's ids for " + nameOf(all[1], 1) + ", which has ended");
}

TEST_F(Patience, ARankThatIsLateEndsAll) {
  int port = freePort();
  auto all = runRanks(2, [&](int rank) {
    Rendezvous ranks(environmentOf(rank, 2, port), "test");
    if (rank == 1)
      pause();
    ranks.barrier("NCCL's ids");
  });
  expectEnd(all, "rank 0: waited 1 s at NCCL's ids for " + nameOf(all[1], 1));
  port = freePort();
  all = runRanks(2, [&](int rank) {
    if (rank == 1) // of three
      return;
    Rendezvous ranks(environmentOf(rank, 3, port), "test");
  });
  expectEnd(all,
            "ranks 1, 2 of 3 have not come to port " + std::to_string(port) + " of host " +
                hostName() + " within 1 s",
            1);
  port = freePort();
  all = runRanks(3, [&](int rank) {
    if (rank == 1) // of four
      return;
    Rendezvous ranks(environmentOf(rank, 4, port), "test");
  });
  expectEnd(all,
            "ranks 1, 3 of 4 have not come to port " + std::to_string(port) + " of host " +
                hostName() + " within 1 s; rank 2 (host " + hostName() + ") has",
            1);
  all = runRanks(1, [&](int) { Rendezvous ranks(environmentOf(1, 2, port), "test"); });
  expectEnd(all, nameOf(all[0], 1) + " has not found rank 0 at 127.0.0.1:" + std::to_string(port) +
                     " within 1 s: Connection refused");
}

TEST(Rendezvous, TakesTheFirstFreePort) {
  Socket taken = listenOn(0); // accepts connections without answering
  int free = freePort();
  auto all = runRanks(2, [&](int rank) {
    LaunchEnvironment environment = environmentOf(rank, 2, 0);
    environment.ports = {portOf(taken), free};
    Rendezvous ranks(environment, "test");
    ranks.barrier("the end");
  });
  EXPECT_EQ(textOf(all), "");
  all = runRanks(1, [&](int) { Rendezvous(environmentOf(0, 2, portOf(taken)), "test"); });
  expectEnd(all, "rank 0 cannot listen on port " + std::to_string(portOf(taken)) +
                     ": Address already in use; another run may have it: choose another "
                     "MASTER_PORT");
}

} // namespace
} // namespace partita_rt::processes
