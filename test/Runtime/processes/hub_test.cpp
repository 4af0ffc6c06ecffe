// What rank 0 says of the others, who succeeds it, and how frames carry texts.

#include "common/watch/rank_position.h"
#include "processes/hub.h"
#include "processes/succession.h"
#include "processes/wire.h"

#include <atomic>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace partita_rt::processes {
namespace {

/// Ranks of a host that is gone do not answer, and cost no time each.
TEST(Succession, AsksAllRanksAtOnce) {
  Socket silent = listenOn(0), lives = listenOn(0);
  std::vector<Peer> peers(10);
  for (Peer &peer : peers) {
    peer.address = "127.0.0.1";
    peer.port = portOf(silent);
  }
  auto begin = Clock::now();
  EXPECT_FALSE(anotherSpeaks(peers, 9, "run", "message"));
  EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(2500));
  peers[8].port = portOf(lives);
  OwnPort port(std::move(lives), "run");
  std::atomic<bool> isOver{false};
  std::vector<Frame> said;
  std::thread other([&] {
    while (!isOver)
      for (const Frame &frame : port.serve())
        said.push_back(frame);
  });
  EXPECT_TRUE(anotherSpeaks(peers, 9, "run", "message"));
  EXPECT_FALSE(anotherSpeaks(peers, 9, "another run", "message"));
  tellOver(peers, 0, "run");
  usleep(200'000);
  isOver = true;
  other.join();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].kind, FrameKind::Lost);
  EXPECT_EQ(said[0].text, "message");
  EXPECT_EQ(said[1].kind, FrameKind::Over);
}

/// A hub, and the frames that it sends rank 0.
struct HubOfTest {
  explicit HubOfTest(std::vector<Peer> peers)
      : hub(std::move(peers), 1, [this](int rank, const Frame &frame) {
          if (rank == 0)
            sent.push_back(frame);
        }) {}
  /// Lets ten seconds pass, or as long as no lost rank ends the run. Returns why it ends, or "".
  std::string endByLostRank(Clock::time_point now) {
    for (int i = 0; i < 100; ++i, hub.tick(now += std::chrono::milliseconds(100)))
      if (!sent.empty() && sent.back().kind == FrameKind::EndByLostRank)
        return sent.back().text;
    return "";
  }
  std::vector<Frame> sent;
  Hub hub;
};

/// While files are read, a gather waits for longer than the time-out, and says for how long.
TEST(Hub, SaysHowLongItHasWaited) {
  std::vector<Peer> peers(4);
  peers[0].name = "rank 0";
  HubOfTest test(peers);
  Hub &hub = test.hub;
  RankPosition reads;
  reads.phase = Phase::SetUp;
  hub.setPosition(&reads);
  auto now = Clock::now();
  hub.handle(1, {FrameKind::Gather, 1, pack({"weights", ""})}, now);
  hub.handle(2, {FrameKind::Gather, 1, pack({"weights", ""})}, now);
  hub.handle(3, {FrameKind::Gather, 1, pack({"weights", ""})}, now);
  for (int second : {1, 3, 1790, 1801, 1802})
    hub.tick(now + std::chrono::seconds(second));
  ASSERT_FALSE(test.sent.empty());
  EXPECT_NE(test.sent.back().text.find("waited 1800 s at weights for rank 0"), std::string::npos)
      << test.sent.back().text;
}

/// Of a silent rank whose process is not stopped, rank 0's host alone knows that it is slow.
TEST(Hub, TellsASlowRankFromAStoppedOne) {
  for (bool isBeside : {true, false}) {
    std::vector<Peer> peers(2);
    peers[1] = {"here", int(getpid()), 0, "127.0.0.1", 1, 1, isBeside};
    peers[1].name = "rank 1";
    HubOfTest test(peers);
    Hub &hub = test.hub;
    auto now = Clock::now();
    RankPosition position;
    position.beats = 1;
    hub.handle(1, {FrameKind::Alive, 0, imageOf(position)}, now);
    std::string text = test.endByLostRank(now);
    ASSERT_FALSE(text.empty());
    EXPECT_EQ(text.find("is slow: its process runs") != std::string::npos, isBeside) << text;
    EXPECT_EQ(text.find("has stopped") != std::string::npos, !isBeside) << text;
  }
}

/// A rank may die before its first heartbeat since others see its position.
TEST(Hub, SaysWhereADeadRankWas) {
  std::vector<Peer> peers(2);
  peers[1].name = "rank 1";
  HubOfTest test(peers);
  Hub &hub = test.hub;
  RankPosition old, shared;
  old.beats = 1;
  old.phase = Phase::SetUp;
  auto now = Clock::now();
  hub.handle(1, {FrameKind::Alive, 0, imageOf(old)}, now);
  hub.see(1, shared);
  shared.phase = Phase::Step;
  shared.step = 7;
  hub.closed(1, now);
  std::string text = test.endByLostRank(now);
  ASSERT_FALSE(text.empty());
  EXPECT_NE(text.find("died; it was in step 7"), std::string::npos) << text;
}

TEST(Hub, NamesFewOfManyThatWait) {
  std::vector<Peer> peers(30);
  for (size_t r = 0; r < peers.size(); ++r)
    peers[r].name = "rank " + std::to_string(r);
  HubOfTest test(peers);
  Hub &hub = test.hub;
  auto now = Clock::now();
  hub.closed(7, now);
  hub.tick(now += std::chrono::milliseconds(100));
  for (int rank = 0; rank < 30; ++rank)
    if (rank != 7)
      hub.handle(rank, {FrameKind::Answer, 0, "waits"}, now);
  ASSERT_EQ(test.sent.back().kind, FrameKind::EndByLostRank);
  std::string more = "; " + std::to_string(29 - kNamedWaiters) + " more ranks wait";
  EXPECT_NE(test.sent.back().text.find(more), std::string::npos) << test.sent.back().text;
}

TEST(Hub, SaysWhichRanksHaveEnded) {
  HubOfTest test(std::vector<Peer>(4));
  Hub &hub = test.hub;
  auto now = Clock::now();
  hub.handle(1, {FrameKind::Goodbye, 0, ""}, now);
  hub.handle(3, {FrameKind::Goodbye, 0, ""}, now);
  hub.handle(0, {FrameKind::Gather, 1, pack({"the end", ""})}, now);
  hub.tick(now + std::chrono::seconds(1));
  ASSERT_EQ(test.sent.back().kind, FrameKind::End);
  EXPECT_NE(test.sent.back().text.find("waits at the end for ranks 1, 3, which have ended"),
            std::string::npos)
      << test.sent.back().text;
}

TEST(Wire, TextsThatAreNotWhatPackMakesAreErrors) {
  std::string packed = pack({"a", "", "bcd"});
  EXPECT_EQ(unpack(packed, 3), (std::vector<std::string>{"a", "", "bcd"}));
  EXPECT_THROW(unpack(packed, 2), std::exception);
  EXPECT_THROW(unpack(packed, 4), std::exception);
  EXPECT_THROW(unpack(packed + "x", 3), std::exception);
  for (size_t n = 0; n < packed.size(); ++n)
    EXPECT_THROW(unpack(packed.substr(0, n), 3), std::exception);
  packed[3] = char(0x7f);
  EXPECT_THROW(unpack(packed, 3), std::exception);
}

} // namespace
} // namespace partita_rt::processes
