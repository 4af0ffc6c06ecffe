// Who is waited for, by what ranks write on their board.

#include "cpu/board.h"

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
      places[r] = &slots[r];
    }
  }
  std::string askedBy(int rank) { return Board("dp", rank, kRanks, places).awaited(mine); }
  static bool names(const std::string &text, int rank) {
    return text.find("for rank " + std::to_string(rank) + " of axis dp") != std::string::npos;
  }

  Signature mine;
  BoardSlot slots[kRanks];
  BoardSlot *places[kRanks];
};

TEST_F(BoardTest, NamesTheRankThatHasNotStarted) {
  slots[2].started = 6;
  slots[3].started = 9; // is ahead, on other collectives
  for (int rank : {0, 1, 3})
    EXPECT_TRUE(names(askedBy(rank), 2)) << askedBy(rank);
  EXPECT_NE(askedBy(0).find("which has started 6 collectives"), std::string::npos) << askedBy(0);
}

TEST_F(BoardTest, NamesTheRankThatHasStartedAndStopped) {
  slots[2].filled = 2;
  for (int rank : {0, 1, 3})
    EXPECT_TRUE(names(askedBy(rank), 2)) << askedBy(rank);
  EXPECT_NE(askedBy(0).find("has started it and done less"), std::string::npos) << askedBy(0);
}

TEST_F(BoardTest, NeverNamesTheRankThatAsks) {
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_FALSE(names(askedBy(rank), rank)) << askedBy(rank);
  slots[0].filled = 1; // even where it is behind
  EXPECT_FALSE(names(askedBy(0), 0));
}

} // namespace
} // namespace partita_rt
