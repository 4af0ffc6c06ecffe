//===- KnownCheckpointsTests.cpp - which checkpoints were there before ------------------------===//

#include "tools/partita/Run/KnownCheckpoints.h"
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace partita::tool;
namespace fs = std::filesystem;

namespace {

/// How many descriptors of this process lead into the folder?
int openIn(const fs::path &folder) {
  int count = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    count += fs::read_symlink(entry.path(), error).string().rfind(folder.string() + "/", 0) == 0;
  }
  return count;
}

TEST(KnownCheckpoints, KeepTheirFileSystemBusyOnlyWhileTheyAreHeld) {
  fs::path folder = fs::temp_directory_path() / ("known-" + std::to_string(getpid()));
  fs::create_directories(folder / "step-1");
  fs::create_directories(folder / "step-2");
  KnownCheckpoints known(folder.string());
  EXPECT_EQ(openIn(folder), 2);
  fs::rename(folder / "step-1", folder / "step-7");
  fs::remove(folder / "step-2");
  fs::create_directory(folder / "step-3"); // it must not get the inode of step-2
  EXPECT_TRUE(known.have((folder / "step-7").string()));
  EXPECT_FALSE(known.have((folder / "step-3").string()));
  EXPECT_TRUE(known.hasNew(folder.string()));

  known.release();
  EXPECT_EQ(openIn(folder), 0);
  EXPECT_TRUE(known.have((folder / "step-7").string()));
  known.hold(
      folder.string()); // forgets step-2, whose inode may be given to another one from now on
  fs::create_directory(folder / "step-4");
  EXPECT_TRUE(known.have((folder / "step-7").string()));
  EXPECT_FALSE(known.have((folder / "step-4").string()));
  fs::remove_all(folder);
}

} // namespace
