//===- FolderAnchorTests.cpp - whether the folder of checkpoints is still there --------------===//

#include "tools/partita/Run/FolderAnchor.h"
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace partita::tool;
namespace fs = std::filesystem;

namespace {

TEST(FolderAnchor, IsTheNearestParentThatThereIs) {
  EXPECT_EQ(FolderAnchor("/nowhere-yet").name(), "/");
  EXPECT_EQ(FolderAnchor("/nowhere/yet/").name(), "/");
  EXPECT_EQ(FolderAnchor("/usr/nowhere/yet").name(), "/usr");
  EXPECT_EQ(FolderAnchor("nowhere/yet").name(), ".");
  EXPECT_EQ(FolderAnchor("").name(), ""); // no folder
  EXPECT_TRUE(FolderAnchor("/nowhere-yet").isThere());
}

TEST(FolderAnchor, SeesThatAnotherFolderHasItsName) {
  fs::path folder = fs::temp_directory_path() / ("anchor-" + std::to_string(getpid()));
  fs::create_directories(folder / "mounted");
  FolderAnchor anchor((folder / "mounted" / "run").string());
  EXPECT_TRUE(anchor.isThere());
  fs::rename(folder / "mounted", folder / "unmounted");
  EXPECT_FALSE(anchor.isThere());
  fs::create_directory(folder / "mounted");
  EXPECT_FALSE(anchor.isThere());
  fs::remove(folder / "mounted");
  fs::rename(folder / "unmounted", folder / "mounted");
  EXPECT_TRUE(anchor.isThere());
  fs::remove_all(folder);
}

} // namespace
