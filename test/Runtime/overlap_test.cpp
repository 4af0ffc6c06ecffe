// Polls complete a collective before its wait. The transports are state machines that never block,
// so one thread can play all ranks here, in any order; nothing depends on chance or on the clock.

#include "cpu/groups/thread_group.h"
#include "cpu/groups/window_group.h"
#include "cpu/kernels/between_tiles.h"
#include "partita_rt/kernels.h"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

using namespace partita_rt;

namespace {

constexpr int kRanks = 3;
constexpr int64_t kAll = int64_t(1) << 40;

/// Returns values whose float sum depends on the order of addition.
float value(int rank, int64_t i) {
  return float((i * 7919 + rank * 104729) % 1000003) * (rank % 2 ? 1e-3f : 1e3f);
}

/// The ranks of one group, all in this thread.
class Ranks {
public:
  explicit Ranks(bool window) {
    if (window)
      makeWindow();
    else
      makeThreads();
  }
  Communicator &operator[](int rank) { return *groups[size_t(rank)]; }
  void pollAll(int64_t bytes, int turns) {
    for (int turn = 0; turn < turns; ++turn)
      for (auto &group : groups)
        group->poll(bytes);
  }

private:
  void makeThreads() {
    auto shared = std::make_shared<ThreadGroup::Shared>(kRanks);
    for (int r = 0; r < kRanks; ++r)
      groups.push_back(std::make_unique<ThreadGroup>("dp", r, shared, &failure));
  }
  void makeWindow() {
    constexpr int64_t kStagingSlotBytes = 64 << 10;
    staging.resize(kRanks,
                   std::vector<float>(size_t(kStagingSlotBytes) * WindowGroup::kStagingSlots / 4));
    std::vector<BoardSlot *> entries;
    std::vector<char *> pointers;
    for (int r = 0; r < kRanks; ++r) {
      entries.push_back(&slots[r]);
      pointers.push_back(reinterpret_cast<char *>(staging[size_t(r)].data()));
    }
    for (int r = 0; r < kRanks; ++r)
      groups.push_back(std::make_unique<WindowGroup>("dp", r, kRanks, entries.data(),
                                                     pointers.data(), kStagingSlotBytes, nullptr));
  }

  FailureFlag failure;
  BoardSlot slots[kRanks] = {};
  std::vector<std::vector<float>> staging;
  std::vector<std::unique_ptr<Communicator>> groups;
};

struct Gradients {
  explicit Gradients(int64_t n) : of(kRanks, std::vector<float>(static_cast<size_t>(n))) {
    for (int r = 0; r < kRanks; ++r)
      for (int64_t i = 0; i < n; ++i)
        of[size_t(r)][size_t(i)] = value(r, i);
    // Add stored numbers: inside the sum, value() could be contracted to an FMA.
    sums = of[0];
    for (int r = 1; r < kRanks; ++r)
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] += of[size_t(r)][i];
  }
  Pending start(Ranks &ranks, int r) {
    std::vector<float> &mine = of[size_t(r)];
    int64_t half = int64_t(mine.size()) / 2;
    return allReduceStart(ranks[r],
                          {{mine.data(), half}, {mine.data() + half, int64_t(mine.size()) - half}},
                          "gradient");
  }
  void expectSums() {
    for (int r = 0; r < kRanks; ++r)
      for (size_t i = 0; i < of[size_t(r)].size(); ++i)
        ASSERT_EQ(of[size_t(r)][i], sums[i]) << "element " << i << " of rank " << r;
  }
  std::vector<std::vector<float>> of;
  std::vector<float> sums;
};

class Overlap : public testing::TestWithParam<bool> {};

TEST_P(Overlap, PollsCompleteACollectiveBeforeItsWait) {
  constexpr int64_t n = 1000003;
  Ranks ranks(GetParam());
  Gradients gradients(n);
  std::vector<Pending> pending(kRanks);
  pending[0] = gradients.start(ranks, 0);
  pending[2] = gradients.start(ranks, 2);
  // Rank 1 lags: the others' polls return without having reduced anything.
  ranks[0].poll(kAll);
  ranks[2].poll(kAll);
  EXPECT_EQ(ranks[0].reduced().inPolls, 0);
  EXPECT_FALSE(ranks[0].isComplete(pending[0].number));
  pending[1] = gradients.start(ranks, 1);
  ranks.pollAll(kAll, 200);
  int64_t reduced = 0;
  for (int r = 0; r < kRanks; ++r) {
    EXPECT_TRUE(ranks[r].isComplete(pending[size_t(r)].number)) << "rank " << r;
    reduced += ranks[r].reduced().inPolls;
    EXPECT_EQ(ranks[r].reduced().inWaits, 0);
  }
  EXPECT_EQ(reduced, n * 4); // one rank reduces each element
  gradients.expectSums();
  for (Pending p : pending)
    wait(p);
}

TEST_P(Overlap, APollDoesABoundedStep) {
  constexpr int64_t n = 4000000;
  Ranks ranks(GetParam());
  Gradients gradients(n);
  for (int r = 0; r < kRanks; ++r)
    gradients.start(ranks, r);
  int64_t before = 0, most = 0;
  int polls = 0;
  for (; !ranks[0].isComplete(1) && polls < 100000; ++polls) {
    ranks.pollAll(1, 1);
    most = std::max(most, ranks[0].reduced().inPolls - before);
    before = ranks[0].reduced().inPolls;
  }
  EXPECT_TRUE(ranks[0].isComplete(1));
  EXPECT_GT(polls, 10);
  EXPECT_LE(most, 512 << 10);
  gradients.expectSums();
}

// A rank polls between the tiles of attention, if its thread says so: a shift beside a step of it is complete before its wait.
TEST_P(Overlap, AttentionMovesAShiftOn) {
  constexpr int64_t n = 300000, positions = 200, size = positions * 8;
  Ranks ranks(GetParam());
  std::vector<std::vector<float>> from(kRanks), to(kRanks, std::vector<float>(n));
  std::vector<Pending> pending;
  for (int r = 0; r < kRanks; ++r) {
    for (int64_t i = 0; i < n; ++i)
      from[size_t(r)].push_back(value(r, i));
    pending.push_back(
        shiftStart(ranks[r], {{from[size_t(r)].data(), to[size_t(r)].data(), n}}, "keys"));
  }
  std::vector<float> q(size, 0.5f), out(size), lse(positions);
  HeadsOf<const float> in{q.data(), size, 8, 8};
  AttentionShape shape{1, 1, positions, positions, 8, 8, 1, true, 1.0f};
  int64_t first = 0;
  shape.queries = shape.keys = {2 * positions, 1, &first};
  auto step = [&] {
    attentionStep({out.data(), size, 8, 8}, lse.data(), in, in, in, shape, ConstScores{},
                  /*continues=*/false);
  };
  step();
  for (int r = 0; r < kRanks; ++r)
    EXPECT_FALSE(ranks[r].isComplete(pending[size_t(r)].number)) << "nothing polls";
  {
    BetweenTiles beside([&] { ranks.pollAll(kAll, 20); });
    step();
  }
  for (int r = 0; r < kRanks; ++r) {
    EXPECT_TRUE(ranks[r].isComplete(pending[size_t(r)].number)) << "rank " << r;
    EXPECT_EQ(to[size_t(r)], from[size_t((r + kRanks - 1) % kRanks)]) << "rank " << r;
    wait(pending[size_t(r)]);
  }
}

// Several collectives are pending; polls and waits mix, and waits come out of order.
TEST_P(Overlap, LaterCollectivesGoOnWhileAnEarlierOneIsWaitedFor) {
  Ranks ranks(GetParam());
  Gradients first(70001), second(150003);
  std::vector<Pending> a(kRanks), b(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    a[size_t(r)] = first.start(ranks, r);
    ranks[r].poll(1 << 16);
    b[size_t(r)] = second.start(ranks, r);
  }
  ranks.pollAll(1 << 16, 100);
  for (int r = 0; r < kRanks; ++r) {
    wait(b[size_t(r)]);
    wait(a[size_t(r)]);
    EXPECT_EQ(ranks[r].outstanding(), 0);
  }
  first.expectSums();
  second.expectSums();
}

// The next block of keys travels while this one is computed.
TEST_P(Overlap, PollsCompleteAShiftBeforeItsWait) {
  constexpr int64_t n = 300007;
  Ranks ranks(GetParam());
  for (bool back : {false, true}) {
    std::vector<std::vector<float>> from(kRanks, std::vector<float>(size_t(n))),
        to(kRanks, std::vector<float>(size_t(n)));
    std::vector<Pending> pending;
    for (int r = 0; r < kRanks; ++r) {
      for (int64_t i = 0; i < n; ++i)
        from[size_t(r)][size_t(i)] = value(r, i);
      const float *keys = from[size_t(r)].data();
      float *next = to[size_t(r)].data();
      pending.push_back(shiftStart(ranks[r],
                                   {{keys, next, n / 2}, {keys + n / 2, next + n / 2, n - n / 2}},
                                   "h.0.attn", back));
      EXPECT_FALSE(ranks[r].isComplete(pending.back().number));
    }
    ranks.pollAll(kAll, 200);
    for (int r = 0; r < kRanks; ++r) {
      EXPECT_TRUE(ranks[r].isComplete(pending[size_t(r)].number)) << "rank " << r;
      EXPECT_EQ(to[size_t(r)], from[size_t(shiftSource(r, kRanks, back))]) << "rank " << r;
      wait(pending[size_t(r)]);
    }
  }
}

TEST_P(Overlap, APollFindsThatRanksDiffer) {
  Ranks ranks(GetParam());
  float x[4] = {};
  allReduceStart(ranks[0], {{x, 4}}, "h.0.mlp");
  allReduceStart(ranks[1], {{x, 3}}, "h.1.mlp");
  try {
    ranks.pollAll(kAll, 3);
    FAIL() << "no error";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 is at all_reduce #1 (float32, 12 bytes"),
              std::string::npos)
        << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Overlap, testing::Bool(),
                         [](const auto &info) { return info.param ? "Window" : "Threads"; });

} // namespace
