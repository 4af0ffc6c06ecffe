//===- RanksBelowTests.cpp - which processes are a launcher's ranks ---------------------------===//

#include "Sleeper.h"
#include "tools/partita/Run/RanksBelow.h"
#include <gtest/gtest.h>

using namespace partita::tool;
namespace fs = std::filesystem;

namespace {

TEST(RanksBelow, AreFoundAfterTheirProgramWasCompiledAgain) {
  Sleeper sleeper;
  RanksBelow ranks(getpid(), sleeper.program.string());
  EXPECT_EQ(ranks.find(), std::vector{sleeper.process});
  fs::remove(sleeper.program);
  EXPECT_EQ(ranks.find(), std::vector{sleeper.process});
  fs::copy_file("/bin/sleep", sleeper.program);
  EXPECT_EQ(ranks.find(), std::vector{sleeper.process});
}

TEST(RanksBelow, AreNotOtherPrograms) {
  Sleeper sleeper;
  EXPECT_TRUE(RanksBelow(getpid(), "/bin/true").find().empty());
  EXPECT_TRUE(RanksBelow(getpid(), "/nowhere").find().empty());
}

} // namespace
