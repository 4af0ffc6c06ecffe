//===- OrphansTests.cpp - how ranks end whose launcher has ended before them ------------------===//

#include "Sleeper.h"
#include "runtime/include/partita_rt/start_marks.h"
#include "tools/partita/Run/Orphans.h"
#include <chrono>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

using namespace partita::tool;

namespace {

class Orphans : public testing::Test {
protected:
  void SetUp() override { setenv("PARTITA_PATIENCE", "mark:1,orphans:1", 1); }
  void TearDown() override { unsetenv("PARTITA_PATIENCE"); }

  /// Ends the rank; returns after how many seconds it has.
  double end(const Sleeper &rank, const StartMarks &marks) {
    RanksBelow ranks(getpid(), rank.program.string());
    StoppedRanks stopped(100);
    auto begin = std::chrono::steady_clock::now();
    byItself = endOrphans(ranks, stopped, marks, /*passed=*/0, /*leavesOthers=*/false);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  bool byItself = false; ///< it has told the rank
};

TEST_F(Orphans, AreToldIfNobodyHas) {
  StartMarks marks;
  double seconds = end(Sleeper(), marks);
  EXPECT_GE(seconds, 1);
  EXPECT_LT(seconds, 2);
  EXPECT_TRUE(byItself);
}

TEST_F(Orphans, AreKilledIfTheyDoNotFollow) {
  StartMarks marks;
  EXPECT_GE(end(Sleeper(/*obeys=*/false), marks), 2);
}

// One that has said that it is about to end, such as with a checkpoint, has all the time it needs.
TEST_F(Orphans, AreLeftAloneIfTheyAreAboutToEnd) {
  StartMarks marks;
  Sleeper rank(/*obeys=*/false);
  std::ofstream(std::string(getenv(partita_rt::kMarksVariable)) + "/" + partita_rt::kAskedMark +
                std::to_string(rank.process));
  std::thread later([&] {
    sleep(4);
    kill(rank.process, SIGKILL);
  });
  EXPECT_GE(end(rank, marks), 4);
  EXPECT_FALSE(byItself); // a launcher has
  later.join();
}

} // namespace
