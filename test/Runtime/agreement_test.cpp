// A signal ends the run with one step on all ranks. Where ranks of stages do not meet in a step, none
// waits for another: one thread can play both, each a step ahead of the next.

#include "common/run/agreement.h"
#include "cpu/groups/thread_group.h"

#include <gtest/gtest.h>
#include <memory>
#include <thread>

using namespace partita_rt;

namespace {

constexpr int kSigterm = 15;

/// Two stages of one rank.
struct TwoStages {
  explicit TwoStages(bool meets) {
    if (meets)
      stages[1].census = census;
    program.mesh = mesh;
    program.groups = groups;
    program.stages = stages;
    program.stageAxis = 0;
    auto shared = std::make_shared<ThreadGroup::Shared>(2);
    for (int r = 0; r < 2; ++r)
      worlds.push_back(std::make_unique<ThreadGroup>("world", r, shared, &failure));
    for (int r = 0; r < 2; ++r) {
      ranks[r].program = &program;
      ranks[r].rank = r;
      ranks[r].ranks = 2;
      ranks[r].world = worlds[size_t(r)].get();
      agreements.push_back(std::make_unique<StepAgreement>(ranks[r]));
    }
  }
  int afterStep(int rank, int mine = 0, bool waits = false) {
    int signal = 0;
    for (const StepEnd &end :
         agreements[size_t(rank)]->afterStep({++steps[rank], mine, true, rank == 0}, waits)) {
      EXPECT_EQ(end.step, ++known[rank]);
      EXPECT_TRUE(end.written && end.timeUp);
      signal = std::max(signal, end.signal);
    }
    return signal;
  }
  /// Calls it on both ranks, which may wait for each other.
  std::pair<int, int> together(int mine0, int mine1, bool waits) {
    int of0 = -1;
    std::thread other([&] { of0 = afterStep(0, mine0, waits); });
    int of1 = afterStep(1, mine1, waits);
    other.join();
    return {of0, of1};
  }
  int underWay() const { return worlds[0]->outstanding() + worlds[1]->outstanding(); }

  Axis mesh[1] = {{"pp", 2}};
  Group groups[1] = {{"pp", {0}}};
  CensusEntry census[1] = {{CollectiveKind::AllReduce, "pp", 1, 4, "the loss"}};
  Stage stages[2];
  Program program;
  FailureFlag failure;
  std::vector<std::unique_ptr<ThreadGroup>> worlds;
  Rank ranks[2];
  int64_t steps[2] = {}, known[2] = {};
  std::vector<std::unique_ptr<StepAgreement>> agreements;
};

TEST(Agreement, WaitsForNoStageThatIsAStepBehind) {
  TwoStages pipeline(/*meets=*/false);
  for (int step = 1; step < 20; ++step)
    for (int rank : {0, 1}) // a wait for the other rank would never end
      EXPECT_EQ(pipeline.afterStep(rank), 0);
}

TEST(Agreement, EndsTwoStepsAfterASignal) {
  TwoStages pipeline(/*meets=*/false);
  for (int rank : {0, 1, 0})
    EXPECT_EQ(pipeline.afterStep(rank), 0);
  EXPECT_EQ(pipeline.afterStep(1, kSigterm), 0); // after step 2
  for (int rank : {0, 1})
    EXPECT_EQ(pipeline.afterStep(rank), 0);
  EXPECT_EQ(pipeline.together(0, 0, /*waits=*/false), (std::pair{kSigterm, kSigterm}));
  EXPECT_EQ(pipeline.underWay(), 0);
}

TEST(Agreement, EndsAtOnceWhereTheRanksMeet) {
  TwoStages saves(/*meets=*/false);
  for (int rank : {0, 1})
    EXPECT_EQ(saves.afterStep(rank), 0);
  EXPECT_EQ(saves.together(0, kSigterm, /*waits=*/true), (std::pair{kSigterm, kSigterm}));
  EXPECT_EQ(saves.underWay(), 0);
  TwoStages sums(/*meets=*/true);
  EXPECT_EQ(sums.together(0, 0, /*waits=*/false), (std::pair{0, 0}));
  EXPECT_EQ(sums.together(kSigterm, 0, /*waits=*/false), (std::pair{kSigterm, kSigterm}));
  EXPECT_EQ(sums.underWay(), 0);
}

/// A save is complete once every rank has written its file, and rank 0's clock alone counts.
TEST(Agreement, IsWrittenByAllRanksAndTimedByTheFirst) {
  TwoStages pipeline(/*meets=*/true);
  auto together = [&](StepEnd of0, StepEnd of1) {
    std::vector<StepEnd> known;
    std::thread other([&] { pipeline.agreements[0]->afterStep(of0, false); });
    known = pipeline.agreements[1]->afterStep(of1, false);
    other.join();
    EXPECT_EQ(known.size(), 1u);
    return known.front();
  };
  for (bool written0 : {false, true})
    for (bool written1 : {false, true}) {
      StepEnd end = together({1, 0, written0, written1}, {1, 0, written1, !written1});
      EXPECT_EQ(end.written, written0 && written1);
      EXPECT_EQ(end.timeUp, written1);
    }
}

} // namespace
