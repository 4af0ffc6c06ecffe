// Which rank a watch finds, by what ranks publish.

#include "common/mesh/watch.h"

#include <gtest/gtest.h>
#include <memory>

using namespace partita_rt;

namespace {

constexpr double kTimeout = 10;

/// Ranks that a test moves, and the watch of one that is none of them.
struct Ranks {
  explicit Ranks(int count) : places(size_t(count)), watch(names(count), -1) {
    for (RankPlace &place : places) {
      place.phase = Phase::Step;
      seen.push_back(&place);
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
      for (int r = 0; r < int(places.size()); ++r)
        if (r != silent)
          ++places[size_t(r)].beats;
      for (int r : moving)
        places[size_t(r)].move();
      if (std::string text = watch.look(seen, now, kTimeout); !text.empty())
        return text;
    }
    return "";
  }
  void wait(int rank, int peer, const char *what) {
    writeText(places[size_t(rank)].wait, what);
    places[size_t(rank)].waitsFor = peer;
  }
  std::vector<RankPlace> places;
  std::vector<const RankPlace *> seen;
  Watch watch;
  double now = 0;
};

TEST(Watch, RanksThatMoveAreLeftAlone) {
  Ranks ranks(2);
  EXPECT_EQ(ranks.pass(100, {0, 1}), "");
}

TEST(Watch, AStoppedProcessIsNamedWithItsPlaceAndWaiters) {
  Ranks ranks(3);
  ranks.places[1].step = 4;
  ranks.places[1].work = Work::Backward;
  EXPECT_EQ(ranks.pass(20, {0, 1, 2}), "");
  ranks.wait(0, 1, "all_reduce #2 for rank 1");
  ranks.wait(2, 0, "receive #3 from rank 0");
  double stopped = ranks.now;
  EXPECT_EQ(ranks.pass(20, {}, 1),
            "rank 1 (host here, process 101) has stopped: no sign of life of its process for 10 s; "
            "it was in step 4 (backward); rank 0 (host here, process 100) waits in all_reduce #2 "
            "for rank 1; rank 2 (host here, process 102) waits in receive #3 from rank 0");
  EXPECT_EQ(ranks.watch.subject(), 1);
  EXPECT_LE(ranks.now - stopped, kTimeout + 1);
}

/// While it waits itself, and before anyone waits for it.
TEST(Watch, AProcessThatStopsAnywhereIsNamed) {
  Ranks ranks(2);
  ranks.wait(1, 0, "all_reduce #2 for rank 0");
  EXPECT_EQ(ranks.pass(5, {0}), "");
  EXPECT_EQ(ranks.pass(20, {0}, 1),
            "rank 1 (host here, process 101) has stopped: no sign of life of its process for 10 s; "
            "it was in step 0 (data), and waits in all_reduce #2 for rank 0");
}

TEST(Watch, ARankThatStaysAtOnePlaceIsStuck) {
  Ranks ranks(2);
  EXPECT_EQ(ranks.pass(20, {0, 1}), "");
  ranks.wait(0, 1, "all_reduce #2 for rank 1");
  writeText(ranks.places[1].slot, "slot 4 (forward of h.2, micro-batch 1");
  ranks.places[1].layer = 7;
  EXPECT_EQ(ranks.pass(20, {}),
            "rank 1 (host here, process 101) is stuck: its process lives, but it has not moved for "
            "10 s; it is in step 0 (data), at slot 4 (forward of h.2, micro-batch 1, layer 7); "
            "rank 0 (host here, process 100) waits in all_reduce #2 for rank 1");
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
    ranks.places[1].phase = phase;
    ranks.wait(0, 1, "the start of training");
    EXPECT_EQ(ranks.pass(1000, {}), "");
    EXPECT_NE(ranks.pass(1000, {}).find("rank 1 (host here, process 101) is stuck"),
              std::string::npos);
    // But a process that has stopped reads none.
    Ranks others(2);
    others.places[1].phase = phase;
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
  ranks.places[1].phase = Phase::Ended;
  EXPECT_EQ(ranks.pass(100, {0}, 1), "");
}

TEST(OwnClock, ItStandsStillWhileItsProcessDoes) {
  OwnClock clock(0.001);
  timespec pause{0, 50'000'000};
  nanosleep(&pause, nullptr);
  EXPECT_LE(clock.advance(), 0.001);
}

TEST(RankPlace, AnImageSaysTheSame) {
  RankPlace place, copy;
  place.beats = 3;
  place.moves = 7;
  place.step = 12;
  place.phase = Phase::Step;
  place.work = Work::Collectives;
  place.layer = 5;
  place.waitsFor = 2;
  writeText(place.slot, "slot 1 (forward");
  writeText(place.wait, "all_reduce #2");
  readImage(copy, imageOf(place));
  EXPECT_EQ(imageOf(copy), imageOf(place));
  EXPECT_EQ(whereText(copy), "in step 12 (collectives), at slot 1 (forward, layer 5)");
  EXPECT_EQ(waitText(copy), "waits in all_reduce #2");
  copy.waitsFor = RankPlace::kNoWait;
  EXPECT_EQ(lastPlaceText(copy),
            "; it was last seen in step 12 (collectives), at slot 1 (forward, layer 5)");
}

TEST(RankPlace, BytesThatAreNoImageAreRefused) {
  RankPlace place;
  EXPECT_THROW(readImage(place, "short"), Error);
  std::string image = imageOf(place);
  for (char &byte : image)
    byte = char(0xff);
  EXPECT_THROW(readImage(place, image), Error);
}

} // namespace
