//===- KnownCheckpointsTests.cpp - which checkpoints were there before ------------------------===//

#include "tools/partita/Run/KnownCheckpoints.h"
#include <filesystem>
#include <gtest/gtest.h>
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

} // namespace
