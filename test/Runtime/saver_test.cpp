// Saving checkpoints into a run's folder: beside the training, under their final name at once or not
// at all, and no more of them than are kept.

#include "savers.h"

#include <algorithm>
#include <numeric>
#include <unistd.h>

namespace partita_rt {

void beforeThreadCopies() { usleep(useconds_t(1000 * copyPause)); }

namespace {

TEST_F(Saver, KeepsTheNewestAndWhatTheyHadWhenTheyBegan) {
  for (const Plan &plan : plans())
    for (From from : {From::Copy, From::Memory}) {
      ASSERT_EQ(save(plan, {3, 5, 10, 101}, from), "");
      EXPECT_EQ(inFolder(), (Names{"step-10", "step-101"}));
      EXPECT_EQ(readFirst(plan, {101}, 101), "");
      EXPECT_EQ(readFirst(plan, {10}, 10), "");
      fs::remove_all(saveFolder());
    }
}

/// Replicas are compared, and then a bit flips in the memory of the rank that writes them, before it is copied.
TEST_F(Saver, DoesNotSaveWhatIsNoLongerAsItWasCompared) {
  for (const Plan &plan : plans())
    for (From from : {From::Copy, From::Memory})
      for (bool flips : {false, true}) {
        PlanTables tables(plan);
        if (rankCount(tables.program) == 1)
          continue;
        std::string error = runCompared(tables, 1, [&](Rank &rank, ReplicaCheck &replicas) {
          std::map<std::string, uint64_t> hashes = replicas.comparedHashes();
          std::vector<TensorShard> shards = persistentShards(rank);
          auto count = std::find_if(shards.begin(), shards.end(), [](const TensorShard &shard) {
            return shard.name == std::string("count");
          });
          EXPECT_EQ(hashes.count("count"), size_t(count->stages.contains(rank.stageNumber)));
          CheckpointSaver saver(rank, saveFolder(), 2, {});
          if (flips && rank.rank == 0)
            static_cast<char *>(count->data)[2] ^= 8;
          saver.begin({3, 7, true, "data"}, from, hashes);
          std::string error = saver.complete().why;
          if (error.empty())
            error = saver.finish().why;
          if (!error.empty())
            fail("%s", error.c_str());
          barrier(*rank.world, "the end");
        });
        std::string expected = "what it has of count is no longer what all replicas had";
        EXPECT_EQ(error.find(expected) != std::string::npos, flips)
            << meshText(tables.program) << ": " << error;
        EXPECT_EQ(error.empty(), !flips);
        EXPECT_EQ(fs::exists(saveFolder()), !flips);
        fs::remove_all(saveFolder());
      }
}

/// Whoever copies what, and whether the step changes anything before the file is written.
TEST_F(Saver, CopiesBesideAStepUntilItChangesSomething) {
  announcesChanges = true;
  for (auto [pause, changes] : {std::pair(20, true), {0, false}})
    for (const Plan &plan : plans()) {
      SlowCopy slow(pause);
      changesMeanwhile = changes;
      preparesCopy = !preparesCopy;
      ASSERT_EQ(save(plan, {3, 5}), "");
      EXPECT_EQ(readFirst(plan, {5}, 5), "");
      EXPECT_EQ(readFirst(plan, {3}, 3), "");
      fs::remove_all(saveFolder());
    }
}

/// A tensor of several chunks, in one run or in many, where chunks do not end where runs do.
TEST_F(Saver, CopiesLargeTensorsInChunks) {
  const Shape full = {1021, 2000}; // in thirds 2.7 MB, with padding
  const Axis mesh[] = {{"dp", 3}};
  for (const Splits &splits : {Splits{{kFlat, 0}}, Splits{{1, 0}}, Splits{}}) {
    Shape local = full;
    if (splits.count > 0)
      local = splits.begin()->dim == kFlat ? Shape{shardSize(full.elements(), 3)}
                                           : Shape{full[0], shardSize(full[1], 3)};
    const Parameter parameters[] = {{"w", full, local, splits, 0}};
    Stage stage;
    stage.persistentBytes = (local.elements() * 4 + 63) / 64 * 64;
    stage.init = [](Rank &) {};
    const Stage stages[] = {stage};
    Program program;
    program.name = "large";
    program.mesh = mesh;
    program.parameters = parameters;
    program.stages = stages;
    program.announcesChanges = true;
    SlowCopy slow(5);
    auto body = [&](Rank &rank) {
      float *data = rank.persistent(0);
      std::fill_n(data, local.elements(), -1.0f);
      for (const auto &run : runsOf(rank, full, splits))
        std::iota(data + run.local, data + run.local + run.count, float(run.global));
      CheckpointSaver saver(rank, saveFolder(), 2, {});
      saver.begin({1, 7, true, "data"}, From::Copy);
      beginChanges(rank);
      std::fill_n(data, local.elements(), -2.0f);
      EXPECT_EQ(saver.complete().why + saver.finish().why, "");
      barrier(*rank.world, "the end");
    };
    ASSERT_EQ(World(program).run(program, nullptr, body), "");
    CheckpointFiles file(checkpointFile(stepFolder(saveFolder(), 1)));
    int64_t right = 0;
    file.forParts("w", {{0, 0, full.elements()}}, [&](const unsigned char *bytes, const auto &run) {
      for (int64_t i = 0; i < run.count; ++i) {
        float value;
        std::memcpy(&value, bytes + i * 4, 4);
        right += value == float(run.global + i); // below 2^24
      }
    });
    EXPECT_EQ(right, full.elements());
    fs::remove_all(saveFolder());
  }
}

TEST_F(Saver, EarlierCheckpointsCountIfTheRunContinuesThem) {
  const Plan plan = plans()[2];
  ASSERT_EQ(save(plan, {1, 2, 3, 9}, From::Copy, 4), "");
  ASSERT_EQ(save(plan, {4}, From::Copy, 3, {2, 3}), ""); // step 9's was damaged
  EXPECT_EQ(inFolder(), (Names{"step-2", "step-3", "step-4"}));
  ASSERT_EQ(save(plan, {5}, From::Copy, 3, {}), ""); // a new run replaces the old one's
  EXPECT_EQ(inFolder(), (Names{"step-5"}));
  ASSERT_EQ(save(plan, {5}, From::Copy, 3, {}), ""); // also of the same step
  EXPECT_EQ(inFolder(), (Names{"step-5"}));
}

/// One that an earlier version wrote into the folder itself is the oldest.
TEST_F(Saver, ACheckpointInTheFolderItselfIsTheOldest) {
  for (const Plan &plan : {plans()[0], plans()[7]}) {
    fs::remove_all(saveFolder());
    ASSERT_EQ(save(plan, {2}), "");
    for (const auto &entry : fs::directory_iterator(saveFolder() + "/step-2"))
      fs::rename(entry.path(), saveFolder() + "/" + entry.path().filename().string());
    fs::remove(saveFolder() + "/step-2");
    ASSERT_EQ(checkpointsIn(saveFolder()).size(), 1u);
    ASSERT_EQ(save(plan, {3}, From::Copy, 2, {-1}), "");
    std::vector<CheckpointEntry> entries = checkpointsIn(saveFolder());
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].step, 3);
    EXPECT_EQ(entries[1].path, saveFolder());
    EXPECT_EQ(readCheckpointInfo(entries[1].path).step, 2);
    ASSERT_EQ(save(plan, {4}, From::Copy, 2, {-1, 3}), "");
    EXPECT_EQ(inFolder(), (Names{"step-3", "step-4"}));
  }
}

TEST(CheckpointFolders, Names) {
  EXPECT_EQ(stepOfName("step-0"), 0);
  EXPECT_EQ(stepOfName("step-120"), 120);
  for (const char *name : {"", "step", "step-", "step-x", "step-1x", "step-01", "step--1", "stop-1",
                           "step-1.tmp", "step-99999999999999999999", "step- 1"})
    EXPECT_EQ(stepOfName(name), -1) << name;
  EXPECT_TRUE(isUnfinishedName("step-1.tmp"));
  EXPECT_TRUE(isUnfinishedName("step-1.old.tmp"));
  EXPECT_EQ(unfinishedFolder("d", 1, 0xab), "d/step-1.00000000000000ab.tmp");
  EXPECT_TRUE(isUnfinishedName("step-1.00000000000000ab.tmp"));
  for (const char *name : {"step-1", ".tmp", "step.tmp", "mine.tmp", "step-1.tmp.x",
                           "step-1.mine.tmp", "step-1.00000000000000AB.tmp", "step-1.0ab.tmp"})
    EXPECT_FALSE(isUnfinishedName(name)) << name;
}

} // namespace
} // namespace partita_rt
