// Which rank is the slowest, by the times that ranks publish.

#include "common/report/stragglers.h"

#include <gtest/gtest.h>
#include <memory>

using namespace partita_rt;

namespace {

struct Three {
  Three() : stragglers(program, 3, [this](int rank) { return seen[size_t(rank)]; }) {}
  /// Adds steps that take so many milliseconds each.
  void add(int rank, int64_t steps, double forward, double backward, double waits) {
    RankPosition &position = positions[size_t(rank)];
    auto more = [&](Work work, double milliseconds) {
      position.seconds[size_t(work)] =
          position.seconds[size_t(work)] + double(steps) * milliseconds / 1e3;
    };
    more(Work::Forward, forward);
    more(Work::Backward, backward);
    more(Work::Collectives, waits);
    position.steps += steps;
  }
  Program program;
  RankPosition positions[3];
  const RankPosition *seen[3] = {&positions[0], &positions[1], &positions[2]};
  Stragglers stragglers;
};

TEST(Stragglers, TheSlowestIsTheOneThatWaitsLeast) {
  Three ranks;
  ranks.add(0, 10, 4, 6, 5);
  ranks.add(1, 10, 7, 6.5, 1.5);
  ranks.add(2, 10, 4.5, 7, 3.5);
  std::optional<Stragglers::Found> slowest = ranks.stragglers.look();
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->all.rank, 1);
  EXPECT_DOUBLE_EQ(slowest->all.seconds, 0.0135);
  EXPECT_DOUBLE_EQ(slowest->all.median, 0.0115);
  EXPECT_EQ(slowest->byKind[size_t(Work::Forward)].rank, 1);
  EXPECT_EQ(
      ranks.stragglers.text(),
      "slowest: rank 1 with 13.5 ms of work per step, median 11.5 ms (+17 %); forward: rank 1 "
      "+2.5 ms, backward: rank 2 +0.5 ms");
}

TEST(Stragglers, OnlyWhatIsNewCounts) {
  Three ranks;
  ranks.add(0, 10, 100, 0, 0);
  ranks.add(1, 10, 1, 0, 99);
  ranks.add(2, 10, 1, 0, 99);
  EXPECT_EQ(ranks.stragglers.look()->all.rank, 0);
  EXPECT_FALSE(ranks.stragglers.look());
  EXPECT_EQ(ranks.stragglers.text(), "");
  // Ranks may have told of different numbers of steps, or of none.
  ranks.add(0, 2, 3, 0, 5);
  ranks.add(2, 5, 4, 0, 4);
  EXPECT_EQ(ranks.stragglers.look()->all.rank, 2);
  EXPECT_EQ(ranks.stragglers.text(),
            "slowest: rank 2 with 4 ms of work per step, median 3.5 ms (+14 "
            "%); forward: rank 2 +0.5 ms; of 2 of 3 ranks");
}

TEST(Stragglers, OneRankAloneIsNoComparison) {
  Three ranks;
  ranks.seen[1] = ranks.seen[2] = nullptr;
  ranks.add(0, 1, 3, 3, 0);
  ranks.add(1, 1, 9, 9, 0);
  EXPECT_FALSE(ranks.stragglers.look());
  EXPECT_EQ(ranks.stragglers.text(), "");
}

} // namespace
