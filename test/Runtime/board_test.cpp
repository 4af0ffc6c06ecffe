// Finds the awaited rank from what ranks write on their board.

#include "cpu/groups/board.h"

#include <gtest/gtest.h>

namespace partita_rt {
namespace {

class BoardTest : public testing::Test {
protected:
  static constexpr int kRanks = 4;

  BoardTest() {
    mine.number = 7;
    for (int r = 0; r < kRanks; ++r) {
      slots[r].started = 7;
      slots[r].filled = 3;
      slots[r].reduced = 0;
      slots[r].read = 0;
      pointers[r] = &slots[r];
    }
  }
  int askedBy(int rank) { return Board("dp", rank, kRanks, pointers).awaitedRank(mine); }
  std::string textFor(int rank) {
    return Board("dp", rank, kRanks, pointers).awaited(mine, "NAME");
  }

  Signature mine;
  BoardSlot slots[kRanks];
  BoardSlot *pointers[kRanks];
};

TEST_F(BoardTest, NamesTheRankThatHasNotStarted) {
  slots[2].started = 6;
  slots[3].started = 9; // is ahead, on other collectives
  for (int rank : {0, 1, 3})
    EXPECT_EQ(askedBy(rank), 2);
  EXPECT_NE(textFor(0).find("for NAME, which has started 6 collectives"), std::string::npos);
}

TEST_F(BoardTest, NamesTheRankThatHasStartedAndStopped) {
  slots[2].filled = 2;
  for (int rank : {0, 1, 3})
    EXPECT_EQ(askedBy(rank), 2);
  EXPECT_NE(textFor(0).find("has started it and done less"), std::string::npos) << textFor(0);
}

// Rank 1 lags only in collectives that it starts ahead of their use.
TEST_F(BoardTest, NamesTheRankWhoseShareIsLacking) {
  for (BoardSlot &slot : slots)
    slot.reduced = slot.read = 2;
  slots[0].filled = slots[2].filled = 9;
  slots[0].reduced = slots[1].reduced = slots[3].reduced = 3;
  for (int rank : {0, 1, 3})
    EXPECT_EQ(askedBy(rank), 2);
}

TEST_F(BoardTest, NeverNamesTheRankThatAsks) {
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_NE(askedBy(rank), rank);
  slots[0].filled = 1; // even if it lags
  EXPECT_NE(askedBy(0), 0);
}

} // namespace
} // namespace partita_rt
