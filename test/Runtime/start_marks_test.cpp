// What a process says beyond its exit status: the marks that a supervisor reads (start_marks.h).

#include "common/start_marks.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/start_marks.h"
#include "temporary_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <string>
#include <unistd.h>

using namespace partita_rt;

namespace {

/// Each process starts anew: the facts that it has noted belong to the process, so to other tests too. It
/// finds the folder in the environment.
class Marks : public InTemporaryFolder {
protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (const char *known = std::getenv(kMarksVariable)) {
      folder = known;
      return;
    }
    InTemporaryFolder::SetUp();
    setenv(kMarksVariable, folder.c_str(), 1);
  }
  void TearDown() override {
    unsetenv(kMarksVariable);
    InTemporaryFolder::TearDown();
  }
  /// Returns the names of the marks that the process has left.
  std::set<std::string> left() const {
    std::set<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      names.insert(entry.path().filename());
    return names;
  }
  std::string textOf(const char *mark) const {
    std::ifstream file(folder + "/" + mark);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

/// Ends as after an error.
[[noreturn]] void failNow() {
  markError("no such file");
  std::exit(failureStatus());
}

using Names = std::set<std::string>;

TEST_F(Marks, OfAProgramThatRefusesToRun) {
  EXPECT_EXIT(failNow(), testing::ExitedWithCode(kRefused), "");
  EXPECT_EQ(left(), Names{kRefusedMark});
  EXPECT_EQ(textOf(kRefusedMark), "no such file");
}

TEST_F(Marks, OfOneThatHasTrained) {
  EXPECT_EXIT((noteStep(), noteStep(), failNow()), testing::ExitedWithCode(kFailedWhileTraining),
              "");
  EXPECT_EQ(left(), (Names{kTrainedMark, kErrorMark}));
}

TEST_F(Marks, OfOneThatHasLostAnotherRankBeforeAStep) {
  EXPECT_EXIT((noteLostRank("rank 1 died; rank 0 waits in a gather"), failNow()),
              testing::ExitedWithCode(kFailedWhileTraining), "");
  EXPECT_EQ(left(), (Names{kLostMark, kErrorMark}));
  EXPECT_EQ(textOf(kLostMark), "rank 1 died\nrank 1 died; rank 0 waits in a gather");
}

/// Replicas may differ before the first step, too.
TEST_F(Marks, OfAFaultThatARestartMayMend) {
  EXPECT_EXIT((noteFault(), failNow()), testing::ExitedWithCode(kFailedWhileTraining), "");
  EXPECT_EQ(left(), Names{kErrorMark});
}

TEST_F(Marks, SayWhichStepHasFailed) {
  EXPECT_EXIT((noteStep(), noteFailedStep(7, "loss-nan", "the loss of step 7 is nan"), failNow()),
              testing::ExitedWithCode(kFailedWhileTraining), "");
  EXPECT_EQ(left(), (Names{kFailedStepMark, kTrainedMark, kErrorMark}));
  EXPECT_EQ(textOf(kFailedStepMark), "7 loss-nan\nthe loss of step 7 is nan");
}

/// A launcher such as torchrun may start the ranks anew: what those before have left is not why these end. What another
/// rank of the same start leaves, stays.
TEST_F(Marks, OfAnEarlierStartAreRemovedByAStep) {
  for (const char *mark : kMarksOfOneStart)
    std::ofstream(folder + "/" + mark) << "of an earlier start";
  usleep(50'000); // a file's time may be a few milliseconds old
  auto run = [] {
    findMarksFolder();
    usleep(50'000);
    std::ofstream(std::string(std::getenv(kMarksVariable)) + "/" + kTakenMark);
    noteStep();
    std::exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(left(), (Names{kTrainedMark, kTakenMark}));
}

TEST_F(Marks, NoneWhereNobodyAsks) {
  EXPECT_EXIT((unsetenv(kMarksVariable), failNow()), testing::ExitedWithCode(kRefused), "");
  EXPECT_EQ(left(), Names{});
}

} // namespace
