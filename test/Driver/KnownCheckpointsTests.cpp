//===- KnownCheckpointsTests.cpp - which checkpoints were there before ------------------------===//

#include "tools/partita/Run/KnownCheckpoints.h"
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace partita::tool;
namespace fs = std::filesystem;

namespace {

TEST(KnownCheckpoints, AreRecognizedWhateverTheirNamesAre) {
  fs::path folder = fs::temp_directory_path() / ("known-" + std::to_string(getpid()));
  fs::create_directories(folder / "step-1");
  fs::create_directories(folder / "step-2");
  KnownCheckpoints known(folder.string());
  fs::rename(folder / "step-1", folder / "step-7");
  fs::remove(folder / "step-2");
  fs::create_directory(folder / "step-3"); // it must not get the inode of step-2
  EXPECT_TRUE(known.have((folder / "step-7").string()));
  EXPECT_FALSE(known.have((folder / "step-3").string()));
  EXPECT_TRUE(known.hasNew(folder.string()));
  fs::remove_all(folder);
}

/// A run may keep more checkpoints than a process may have files.
TEST(KnownCheckpoints, LeaveFilesToOpen) {
  fs::path folder = fs::temp_directory_path() / ("many-" + std::to_string(getpid()));
  for (int step = 0; step < 200; ++step)
    fs::create_directories(folder / ("step-" + std::to_string(step)));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few{128, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    KnownCheckpoints known(folder.string()), others(folder.string());
    int file = open("/dev/null", O_RDONLY);
    EXPECT_GE(file, 0);
    close(file);
    EXPECT_TRUE(known.have((folder / "step-0").string()));
    EXPECT_TRUE(known.have((folder / "step-199").string()));
  }
  setrlimit(RLIMIT_NOFILE, &before);
  fs::remove_all(folder);
}

} // namespace
