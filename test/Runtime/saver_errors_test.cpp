// Saves that fail, are killed, come late, or find their folder taken, and checkpoints that are damaged since.

#include "savers.h"

#include <algorithm>
#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace partita_rt {
namespace {

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
  PathLock lock;
  ASSERT_EQ(lock.take(saveFolder()), PathLock::Result::Taken);
  EXPECT_EQ(save(plan, {2}), "--checkpoint: another run writes into " + saveFolder() +
                                 "; give each run a folder of its own");
}

} // namespace
} // namespace partita_rt
