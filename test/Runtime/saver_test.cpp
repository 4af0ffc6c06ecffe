// Saving checkpoints into a run's folder: beside the training, under their final name at once or not
// at all, and no more of them than are kept.

#include "checkpoints.h"

#include "common/checkpoint/folder.h"
#include "common/checkpoint/saver.h"
#include "common/mesh/mesh.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <numeric>
#include <regex>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace partita_rt {

static std::atomic<int> copyPause{0}; ///< milliseconds
void beforeThreadCopies() { usleep(useconds_t(1000 * copyPause)); }

namespace {

class Saver : public Checkpoints {
protected:
  using From = CheckpointSaver::From;
  std::string saveFolder() const { return folder + "/run"; }
  bool announcesChanges = false, preparesCopy = false, changesMeanwhile = true;

  /// The thread that copies sleeps over each chunk, so that the rank copies the others.
  struct SlowCopy {
    explicit SlowCopy(int milliseconds) { copyPause = milliseconds; }
    ~SlowCopy() { copyPause = 0; }
  };

  /// Saves steps under a plan as a run does; the ranks' memory changes while files are written, and
  /// where the program announces it, before it is copied. Returns the message of a failure.
  std::string save(const Plan &plan, std::vector<int64_t> steps, From from = From::Copy,
                   int64_t keep = 2, std::set<int64_t> kept = {}) const {
    PlanTables tables(plan);
    tables.program.announcesChanges = announcesChanges;
    return World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      CheckpointSaver saver(rank, saveFolder(), keep, kept);
      if (preparesCopy)
        saver.prepareCopy();
      for (int64_t step : steps) {
        fill(rank, step);
        saver.begin({step, 7, true, "data"}, from);
        EXPECT_EQ(rank.changes != nullptr, from == From::Copy && announcesChanges);
        if (changesMeanwhile && from == From::Copy) {
          beginChanges(rank);
          EXPECT_EQ(rank.changes, nullptr);
          fill(rank, -step);
        }
        std::string error = saver.complete().why;
        EXPECT_EQ(rank.changes, nullptr);
        if (error.empty())
          error = saver.finish().why;
        if (!error.empty())
          fail("%s", error.c_str());
      }
      barrier(*rank.world, "the end"); // a rank that is done must not end before rank 0 reports
    });
  }

  /// Reads the first of these steps that is not damaged, and expects its values.
  std::string readFirst(const Plan &plan, const std::vector<int64_t> &steps, int64_t expected) {
    std::string own = folder;
    std::vector<ResumePoint> points;
    for (int64_t step : steps)
      points.push_back({stepFolder(saveFolder(), step), {step, 7, true, "data"}});
    PlanTables tables(plan);
    std::string error = World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      EXPECT_EQ(resumeFrom(rank, points).info.step, expected);
    });
    if (!error.empty())
      return error;
    folder = stepFolder(saveFolder(), expected);
    error = read(plan, expected);
    folder = own;
    return error;
  }

  /// Without the numbers of starts.
  std::set<std::string> inFolder() const {
    std::set<std::string> result;
    for (const auto &entry : fs::directory_iterator(saveFolder()))
      result.insert(std::regex_replace(entry.path().filename().string(),
                                       std::regex("\\.[0-9a-f]{16}\\.tmp$"), ".tmp"));
    return result;
  }
  using Names = std::set<std::string>;

  /// Returns a file of a checkpoint that has elements of `table` on the last rank.
  std::string lastFile(int64_t step) const {
    std::string last;
    for (const auto &entry : fs::directory_iterator(stepFolder(saveFolder(), step)))
      if (entry.path().extension() == ".safetensors")
        last = std::max(last, entry.path().string());
    return last;
  }
};

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

TEST_F(Saver, ADamagedCheckpointIsSkipped) {
  const Plan plan = plans()[7];
  ASSERT_EQ(save(plan, {3, 4}), "");
  const std::string last = lastFile(4), good = textOf(last),
                    index = indexPath(stepFolder(saveFolder(), 4)), goodIndex = textOf(index);
  auto expectSkipped = [&](const std::string &what) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(readFirst(plan, {4, 3}, 3), "") << what;
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("plan: warning: " + stepFolder(saveFolder(), 4) +
                        " cannot be used, taking the checkpoint before it: "),
              std::string::npos)
        << what << ": " << said;
  };
  std::string bad = good;
  bad[good.size() - 3] ^= 4;
  put(last, bad);
  expectSkipped("a bit of the data of one rank");
  put(last, good.substr(0, 100));
  expectSkipped("a short file");
  fs::remove(last);
  expectSkipped("a missing file");
  put(last, good);
  put(index, goodIndex.substr(0, goodIndex.size() / 2));
  expectSkipped("a torn index");
  fs::remove(index);
  expectSkipped("no index");
  put(index, goodIndex);
  EXPECT_EQ(readFirst(plan, {4, 3}, 4), "");
  fs::remove(last);
  fs::remove(lastFile(3));
  EXPECT_NE(readFirst(plan, {4, 3}, 4).find("checkpoint index " + index), std::string::npos);
}

/// A process is killed while it writes a rank's file, or the index after all of these exist.
TEST_F(Saver, AKilledSaveLeavesTheEarlierOne) {
  const Plan plan = plans()[7];
  ASSERT_EQ(save(plan, {1}), "");
  uintmax_t largest = 0;
  for (const auto &entry : fs::directory_iterator(stepFolder(saveFolder(), 1)))
    if (entry.path().extension() == ".safetensors")
      largest = std::max(largest, entry.file_size());
  ASSERT_GT(fs::file_size(indexPath(stepFolder(saveFolder(), 1))), largest);
  for (uintmax_t limit : {largest - 1, largest}) {
    pid_t child = fork();
    if (child == 0) {
      rlimit most{limit, limit}, none{0, 0};
      setrlimit(RLIMIT_FSIZE, &most);
      setrlimit(RLIMIT_CORE, &none);
      save(plan, {2}, From::Copy, 2, {1});
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    EXPECT_EQ(inFolder(), (Names{"step-0.tmp", "step-1", "step-2.tmp"}));
    EXPECT_EQ(checkpointsIn(saveFolder()).size(), 1u);
    EXPECT_EQ(readFirst(plan, {1}, 1), "");
  }
  ASSERT_EQ(save(plan, {}), "");
  EXPECT_EQ(inFolder(), Names{"step-1"}) << "the next run removes what is unfinished";
}

/// Errors, not signals: no rank's file can grow. The save after that succeeds, and removes what the
/// failed one could not: its folder has a file that keeps it. What the run does not keep has made
/// room before the first one.
TEST_F(Saver, ASaveThatFailsLeavesTheEarlierOne) {
  const Plan plan = plans()[7];
  for (auto [from, announces] :
       {std::pair(From::Copy, false), {From::Copy, true}, {From::Memory, false}}) {
    fs::remove_all(saveFolder());
    ASSERT_EQ(save(plan, {0, 1}, From::Copy, 2), "");
    pid_t child = fork();
    if (child == 0) {
      std::signal(SIGXFSZ, SIG_IGN);
      PlanTables tables(plan);
      tables.program.announcesChanges = announces;
      std::atomic<int> said{0};
      std::string error = World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
        CheckpointSaver saver(rank, saveFolder(), 1, {0, 1});
        for (int64_t step : {2, 3}) {
          std::string unfinished = unfinishedFolder(saveFolder(), 2, saver.startNumber());
          if (rank.rank == 0 && step == 2) {
            makeFolders(unfinished);
            std::ofstream(unfinished + "/stays");
          }
          barrier(*rank.world, "a save");
          rlimit most{step == 2 ? 1 : RLIM_INFINITY, RLIM_INFINITY};
          setrlimit(RLIMIT_FSIZE, &most);
          fill(rank, step);
          saver.begin({step, 7, true, "data"}, from);
          std::string why = saver.complete().why;
          why += saver.finish().why;
          said += why.find("cannot write " + unfinished) == 0;
          if (rank.rank == 0 && step == 2 &&
              inFolder() != Names{"step-0.tmp", "step-1", "step-2.tmp"})
            fail("only step 1's checkpoint should be there, and what stays of step 2's");
          std::string all = "; 4 of 4 ranks have failed)"; // rank 0 speaks for them
          if (why.empty() != (step == 3 || rank.rank != 0) ||
              (!why.empty() && why.find(all) != why.size() - all.size()))
            fail("%s", why.c_str());
        }
      });
      if (!error.empty())
        std::fprintf(stderr, "%s\n", error.c_str());
      _exit(said == 1 && error.empty() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(inFolder(), (Names{"step-3"}));
    EXPECT_EQ(readFirst(plan, {3}, 3), "");
  }
}

/// While the folder's file system is not mounted, nothing is written into what has its path; the saves after that succeed.
TEST_F(Saver, AFolderThatIsNotMountedIsNotWrittenInto) {
  const Plan plan = plans()[7];
  PlanTables tables(plan);
  const std::string away = folder + "/away";
  std::atomic<int> said{0};
  std::string error = World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
    CheckpointSaver saver(rank, saveFolder(), 3, {});
    for (int64_t step : {1, 2, 3, 4}) {
      barrier(*rank.world, "the save before");
      if (rank.rank == 0 && step == 2)
        fs::rename(saveFolder(), away);
      if (rank.rank == 0 && step == 3)
        fs::create_directory(saveFolder());
      if (rank.rank == 0 && step == 4) {
        EXPECT_TRUE(fs::is_empty(saveFolder()));
        fs::remove(saveFolder());
        fs::rename(away, saveFolder());
      }
      barrier(*rank.world, "a save");
      fill(rank, step);
      saver.begin({step, 7, true, "data"}, From::Copy);
      std::string why = saver.complete().why;
      why += saver.finish().why;
      said +=
          why.find(
              "--checkpoint: " + saveFolder() +
              " is not the folder that it was; is a file system not mounted? (rank 0 on host ") ==
          0;
      EXPECT_TRUE(why.empty() || step == 2 || step == 3) << why;
    }
  });
  EXPECT_EQ(error, "");
  EXPECT_EQ(said, 2); // saves
  EXPECT_EQ(inFolder(), (Names{"step-1", "step-4"}));
  EXPECT_EQ(readFirst(plan, {4}, 4), "");
}

/// A run that fails while files are written leaves none of them, and no folder that it made.
TEST_F(Saver, ARunThatFailsLeavesNothingUnfinished) {
  const Plan plan = plans()[7];
  auto failing = [&] {
    PlanTables tables(plan);
    tables.program.announcesChanges = announcesChanges;
    return World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      CheckpointSaver saver(rank, saveFolder(), 2, {1});
      fill(rank, 2);
      saver.begin({2, 7, true, "data"}, From::Copy);
      if (rank.rank == 1)
        fail("a reason");
      barrier(*rank.world, "what follows");
    });
  };
  EXPECT_EQ(failing().substr(0, 4), "rank");
  EXPECT_FALSE(fs::exists(saveFolder()));
  ASSERT_EQ(save(plan, {1}), "");
  EXPECT_NE(failing().find("a reason"), std::string::npos);
  EXPECT_EQ(inFolder(), Names{"step-1"});
  announcesChanges = true;
  SlowCopy slow(50); // it fails while everything is still to be copied
  EXPECT_NE(failing().find("a reason"), std::string::npos);
  EXPECT_EQ(inFolder(), Names{"step-1"});
}

/// Closes this process's descriptors of a folder, and with them its claim.
static void closeAll(const std::string &folder) {
  std::vector<int> open;
  for (const auto &entry : fs::directory_iterator("/proc/self/fd"))
    if (std::error_code none; fs::read_symlink(entry.path(), none) == fs::canonical(folder))
      open.push_back(std::stoi(entry.path().filename()));
  for (int each : open)
    close(each);
}

/// Rank 0 of a start was killed, and with it the claim ended. Others end in the middle of the next start's save, or
/// before it: they remove their files, and the folder if it is empty and their start has made it.
TEST_F(Saver, LateRanksOfAnEarlierStartReachNothingOfALaterOne) {
  const Plan plan = plans()[7];
  for (bool hasBegun : {false, true}) {
    fs::remove_all(saveFolder());
    int isReady[2], goesOn[2];
    ASSERT_TRUE(pipe(isReady) == 0 && pipe(goesOn) == 0);
    char byte = 0;
    pid_t child = fork();
    if (child == 0) {
      PlanTables tables(plan);
      World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
        CheckpointSaver saver(rank, saveFolder(), 2, {});
        fill(rank, 7);
        saver.begin({2, 7, true, "data"}, From::Memory);
        barrier(*rank.world, "a save");
        if (rank.rank == 0) {
          closeAll(saveFolder());
          (void)!::write(isReady[1], &byte, 1);
          (void)!::read(goesOn[0], &byte, 1);
        }
        barrier(*rank.world, "the next start");
        fail("a rank is lost");
      });
      _exit(0);
    }
    ASSERT_EQ(::read(isReady[0], &byte, 1), 1);
    auto endEarlier = [&](Rank &rank) {
      barrier(*rank.world, "the moment before");
      if (rank.rank == 0) {
        EXPECT_EQ(::write(goesOn[1], &byte, 1), 1);
        EXPECT_EQ(waitpid(child, nullptr, 0), child);
      }
      barrier(*rank.world, "the moment after");
    };
    PlanTables tables(plan);
    std::string error = World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      CheckpointSaver saver(rank, saveFolder(), 2, {});
      if (!hasBegun)
        endEarlier(rank);
      fill(rank, 2);
      saver.begin({2, 7, true, "data"}, From::Memory);
      if (hasBegun)
        endEarlier(rank);
      EXPECT_EQ(saver.complete().why, "");
      EXPECT_EQ(saver.finish().why, "");
      barrier(*rank.world, "the end");
    });
    for (int each : {isReady[0], isReady[1], goesOn[0], goesOn[1]})
      close(each);
    EXPECT_EQ(error, "");
    EXPECT_EQ(inFolder(), Names{"step-2"});
    EXPECT_EQ(readFirst(plan, {2}, 2), "");
  }
}

TEST_F(Saver, AFolderOfAnotherRunIsRefused) {
  const Plan plan = plans()[0];
  ASSERT_EQ(save(plan, {1}), "");
  FolderClaim claim;
  claim.take("--checkpoint", saveFolder());
  EXPECT_EQ(save(plan, {2}), "--checkpoint: another run writes into " + saveFolder() +
                                 "; give each run a folder of its own");
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
