// Which rank a watch finds, by what ranks publish.

#include "common/watch/watch.h"

#include <gtest/gtest.h>
#include <memory>

using namespace partita_rt;

namespace {

constexpr double kTimeout = 10;

/// Ranks that a test moves, and the watch of one that is none of them.
struct Ranks {
  explicit Ranks(int count) : positions(size_t(count)), watch(names(count), -1) {
    for (RankPosition &position : positions) {
      position.phase = Phase::Step;
      seen.push_back(&position);
    }
  }
  static std::vector<std::string> names(int count) {
    std::vector<std::string> all;
    for (int r = 0; r < count; ++r)
      all.push_back(processText("rank " + std::to_string(r), "here", 100 + r));
    return all;
  }
  /// All but `silent` live for some seconds; ranks of `moving` move. Returns the first report.
  std::string pass(double seconds, const std::vector<int> &moving, int silent = -1) {
    for (double end = now + seconds; now < end; now += 0.5) {
      for (int r = 0; r < int(positions.size()); ++r)
        if (r != silent)
          ++positions[size_t(r)].beats;
      for (int r : moving)
        positions[size_t(r)].move();
      if (std::string text = watch.look(seen, now, kTimeout); !text.empty())
        return text;
    }
    return "";
  }
  void wait(int rank, int peer, const char *what) {
    writeText(positions[size_t(rank)].wait, what);
    positions[size_t(rank)].waitsFor = peer;
  }
  std::vector<RankPosition> positions;
  std::vector<const RankPosition *> seen;
  Watch watch;
  double now = 0;
};

/// Its heartbeat's thread does not get a processor, for example.
TEST(Watch, AProcessThatRunsIsSlowNotStopped) {
  Ranks ranks(3);
  ranks.watch.setRuns([](int rank) { return rank == 1; });
  EXPECT_EQ(ranks.pass(5, {0, 1, 2}), "");
  EXPECT_EQ(
      ranks.pass(20, {0, 2}, 1),
      "rank 1 (host here, process 101) is slow: its process runs, but it has sent no "
      "heartbeat for 10 s: its host may be overloaded, or --timeout too short; it was in step "
      "0 (data)");
  Ranks stopped(3);
  stopped.watch.setRuns([](int rank) { return rank == 1; });
  EXPECT_EQ(stopped.pass(5, {0, 1, 2}), "");
  EXPECT_EQ(stopped.pass(20, {0, 1}, 2).substr(0, 43),
            "rank 2 (host here, process 102) has stopped");
}

TEST(Watch, RanksThatMoveAreLeftAlone) {
  Ranks ranks(2);
  EXPECT_EQ(ranks.pass(100, {0, 1}), "");
}

TEST(Watch, AStoppedProcessIsNamedWithItsPositionAndWaiters) {
  Ranks ranks(3);
  ranks.positions[1].step = 4;
  ranks.positions[1].work = Work::Backward;
  EXPECT_EQ(ranks.pass(20, {0, 1, 2}), "");
  ranks.wait(0, 1, "all_reduce #2 for rank 1");
  ranks.wait(2, 0, "receive #3 from rank 0");
  double stopped = ranks.now;
  EXPECT_EQ(ranks.pass(20, {}, 1),
            "rank 1 (host here, process 101) has stopped: no heartbeat from its process for 10 s; "
            "it was in step 4 (backward); rank 0 (host here, process 100) waits in all_reduce #2 "
            "for rank 1; rank 2 (host here, process 102) waits in receive #3 from rank 0");
  EXPECT_EQ(ranks.watch.subject(), 1);
  EXPECT_LE(ranks.now - stopped, kTimeout + 1);
}

TEST(Watch, FewOfManyWaitersAreNamed) {
  constexpr int kMore = 3;
  Ranks ranks(1 + kNamedWaiters + kMore);
  for (int r = 1; r < int(ranks.positions.size()); ++r)
    ranks.wait(r, r == 1 ? 0 : 1, "waits"); // directly, or through rank 1
  EXPECT_EQ(ranks.pass(1, {}), "");         // from then on it is known
  std::string text = ranks.pass(20, {}, /*silent=*/0);
  for (int r = 1; r <= kNamedWaiters; ++r)
    EXPECT_NE(text.find("; rank " + std::to_string(r) + " (host here"), std::string::npos) << text;
  EXPECT_EQ(text.find("; rank " + std::to_string(kNamedWaiters + 1) + " ("), std::string::npos);
  EXPECT_EQ(text.substr(text.rfind("; ")), "; 3 more ranks wait for these");
}

/// While it waits itself, and before anyone waits for it.
TEST(Watch, AProcessThatStopsAnywhereIsNamed) {
  Ranks ranks(2);
  ranks.wait(1, 0, "all_reduce #2 for rank 0");
  EXPECT_EQ(ranks.pass(5, {0}), "");
  EXPECT_EQ(ranks.pass(20, {0}, 1),
            "rank 1 (host here, process 101) has stopped: no heartbeat from its process for 10 s; "
            "it was in step 0 (data), and waits in all_reduce #2 for rank 0");
}

TEST(Watch, ARankThatStaysAtOnePositionIsStuck) {
  Ranks ranks(2);
  EXPECT_EQ(ranks.pass(20, {0, 1}), "");
  ranks.wait(0, 1, "all_reduce #2 for rank 1");
  writeText(ranks.positions[1].slot, "slot 4 (forward of h.2, micro-batch 1");
  ranks.positions[1].layer = 7;
  EXPECT_EQ(ranks.pass(20, {}),
            "rank 1 (host here, process 101) is stuck: its process lives, but it has not moved for "
            "10 s; it is in step 0, at slot 4 (forward of h.2, micro-batch 1, layer 7); "
            "rank 0 (host here, process 100) waits in all_reduce #2 for rank 1");
}

TEST(Watch, ARankThatIsStuckMayBeSoBecauseAnotherHasStopped) {
  Ranks ranks(3);
  EXPECT_EQ(ranks.pass(5, {0, 1, 2}), "");
  EXPECT_EQ(ranks.pass(3, {0, 2}), ""); // rank 1 stays where it is
  std::string text = ranks.pass(20, {0}, /*silent=*/2);
  EXPECT_EQ(text.find("rank 2 (host here, process 102) has stopped"), 0u) << text;
}

TEST(Watch, ARankIsStuckThoughAnotherWasSilentForAWhile) {
  Ranks ranks(3);
  EXPECT_EQ(ranks.pass(5, {0, 1, 2}), "");
  EXPECT_EQ(ranks.pass(7, {0}, /*silent=*/2), "");
  std::string text = ranks.pass(5, {0, 2});
  EXPECT_EQ(text.find("rank 1 (host here, process 101) is stuck"), 0u) << text;
}

/// One after the other, and none of them for the time-out: they are not why it is stuck.
TEST(Watch, ARankIsStuckThoughSomeRankIsAlwaysSilent) {
  Ranks ranks(4);
  EXPECT_EQ(ranks.pass(5, {0, 1, 2, 3}), "");
  double stopped = ranks.now;
  std::string text;
  for (int half = 0; text.empty() && half < 200; ++half) {
    int silent = half % 16 >= 12 ? 3 : half % 16 >= 4 && half % 16 < 8 ? 2 : -1;
    for (int r : {0, 1, 2, 3}) // ranks 2 and 3 speak for 2 s each, and are silent for 6
      if (r < 2 || (silent >= 0 && r != silent))
        ++ranks.positions[size_t(r)].beats;
    for (int r : {0, 2, 3})
      ranks.positions[size_t(r)].move();
    text = ranks.watch.look(ranks.seen, ranks.now += 0.5, kTimeout);
  }
  EXPECT_EQ(text.find("rank 1 (host here, process 101) is stuck"), 0u) << text;
  EXPECT_LE(ranks.now - stopped, 2 * kTimeout + 2);
}

TEST(Watch, ARankForWhichOthersWaitTooLongIsSlow) {
  Ranks ranks(2);
  ranks.wait(0, 1, "all_reduce #2 for rank 1");
  EXPECT_EQ(ranks.pass(20, {1}).substr(0, 80),
            "rank 1 (host here, process 101) is slow: rank 0 (host here, process 100) has wai");
}

/// Their own waits say so.
TEST(Watch, RanksThatWaitForOneAnotherAreLeftAlone) {
  Ranks ranks(2);
  ranks.wait(0, 1, "receive #1 from rank 1");
  ranks.wait(1, 0, "receive #1 from rank 0");
  EXPECT_EQ(ranks.pass(100, {}), "");
}

TEST(Watch, FilesTakeLong) {
  for (Phase phase : {Phase::SetUp, Phase::Saving, Phase::Outputs}) {
    Ranks ranks(2);
    ranks.positions[1].phase = phase;
    ranks.wait(0, 1, "the start of training");
    EXPECT_EQ(ranks.pass(1000, {}), "");
    EXPECT_NE(ranks.pass(1000, {}).find("rank 1 (host here, process 101) is stuck"),
              std::string::npos);
    // But a process that has stopped reads none.
    Ranks others(2);
    others.positions[1].phase = phase;
    EXPECT_EQ(others.pass(5, {0}), "");
    EXPECT_NE(others.pass(20, {0}, 1).find("rank 1 (host here, process 101) has stopped"),
              std::string::npos);
  }
}

TEST(Watch, WhatHasNotBeenHeardIsUnknown) {
  Ranks ranks(3);
  ranks.seen[0] = nullptr;
  EXPECT_EQ(ranks.pass(100, {1}, 2), "");
}

TEST(Watch, ARankThatHasEndedIsLeftAlone) {
  Ranks ranks(2);
  EXPECT_EQ(ranks.pass(5, {0, 1}), "");
  ranks.positions[1].phase = Phase::Ended;
  EXPECT_EQ(ranks.pass(100, {0}, 1), "");
}

TEST(OwnClock, ItStandsStillWhileItsProcessDoes) {
  OwnClock clock(0.001);
  timespec pause{0, 50'000'000};
  nanosleep(&pause, nullptr);
  EXPECT_LE(clock.advance(), 0.001);
}

TEST(RankPosition, AnImageSaysTheSame) {
  RankPosition position, copy;
  position.beats = 3;
  position.moves = 7;
  position.step = 12;
  position.phase = Phase::Step;
  position.work = Work::Collectives;
  position.layer = 5;
  position.waitsFor = 2;
  writeText(position.slot, "slot 1 (forward");
  writeText(position.wait, "all_reduce #2");
  readImage(copy, imageOf(position));
  EXPECT_EQ(imageOf(copy), imageOf(position));
  EXPECT_EQ(whereText(copy), "in step 12, at slot 1 (forward, layer 5)");
  EXPECT_EQ(waitText(copy), "waits in all_reduce #2");
  copy.waitsFor = RankPosition::kNoWait;
  EXPECT_EQ(lastPositionText(copy), "; it was last seen in step 12, at slot 1 (forward, layer 5)");
}

TEST(RankPosition, ADeathSaysWhereAndAsOfWhen) {
  RankPosition position, copy;
  EXPECT_EQ(deathText("rank 1 (...)", nullptr), "rank 1 (...) died");
  EXPECT_EQ(deathText("rank 1 (...)", &position), "rank 1 (...) died");
  position.phase = Phase::Step;
  position.step = 12;
  position.layer = 3;
  EXPECT_EQ(deathText("rank 1 (...)", &position, 0.4),
            "rank 1 (...) died; it was in step 12 (data, layer 3)");
  position.waitsFor = 2;
  writeText(position.wait, "all_reduce #2 for rank 2");
  readImage(copy, imageOf(position));
  EXPECT_EQ(
      deathText("rank 1 (...)", &position),
      "rank 1 (...) died; it was in step 12 (data, layer 3), and waited in all_reduce #2 for rank 2");
  EXPECT_EQ(deathText("rank 1 (...)", &copy, 0.46),
            "rank 1 (...) died; it was last seen, 0.4 s before, in step 12 (data, layer 3), and "
            "waited in all_reduce #2 for rank 2");
  // Beyond what a text has room for, it is cut off.
  EXPECT_EQ(deathText(std::string(2 * FixedText::kMost, 'x'), &copy),
            std::string(FixedText::kMost - 1, 'x'));
}

TEST(RankPosition, HeartbeatsThatComeLateChangeNothing) {
  RankPosition position, copy;
  position.beats = 3;
  position.step = 12;
  position.phase = Phase::Step;
  std::string late = imageOf(position);
  position.beats = 4;
  position.step = 13;
  readImage(copy, imageOf(position));
  readImage(copy, late);
  EXPECT_EQ(copy.step, 13);
  EXPECT_EQ(copy.beats, 4u);
  // The last one has the beats of the one before.
  std::string before = imageOf(position);
  position.phase = Phase::Ended;
  readImage(copy, imageOf(position));
  EXPECT_EQ(copy.phase, Phase::Ended);
  readImage(copy, before);
  EXPECT_EQ(copy.phase, Phase::Ended);
}

TEST(RankPosition, BytesThatAreNoImageAreRefused) {
  RankPosition position;
  EXPECT_THROW(readImage(position, "short"), Error);
  std::string image = imageOf(position);
  for (char &byte : image)
    byte = char(0xff);
  EXPECT_THROW(readImage(position, image), Error);
}

} // namespace
