//===- SupervisorClaimTests.cpp - whose a run's files are between two starts -------------------===//

#include "runtime/include/partita_rt/start_marks.h"
#include "tools/partita/Run/SupervisorClaim.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace partita::tool;
namespace fs = std::filesystem;

namespace {

class Claims : public testing::Test {
protected:
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  std::string path(const char *name) const { return (folder / name).string(); }
  /// Why another run with this option is refused; "" if it is not.
  std::string problem(const char *option, const char *name, bool supervises = false) const {
    return SupervisorClaim().take({"--steps", "9", option, path(name)}, supervises);
  }
  fs::path folder = fs::temp_directory_path() / ("claims-" + std::to_string(getpid()));
  std::optional<SupervisorClaim> first{std::in_place};
};

TEST_F(Claims, AreThoseOfOneSupervisor) {
  EXPECT_EQ(
      first->take({"--steps=9", "--checkpoint", path("a/run"), "--log=" + path("log.csv")}, true),
      "");
  std::string expected = "--checkpoint: another run writes into " + path("a/run") +
                         ": its supervisor (process " + std::to_string(getpid()) +
                         ") may be about to start it again; give each run a folder of its own";
  EXPECT_EQ(problem("--checkpoint", "a/run"), expected);
  EXPECT_EQ(problem("--checkpoint", "a/run", /*supervises=*/true), expected);
  EXPECT_NE(problem("--log", "log.csv").find("give each run a log of its own"), std::string::npos);
  EXPECT_EQ(problem("--checkpoint", "a/other", true), "");
  EXPECT_EQ(problem("--checkpoint", "a", true), "");
  first.reset();
  EXPECT_EQ(problem("--checkpoint", "a/run", true), "");
  EXPECT_EQ(problem("--log", "log.csv", true), "");
}

// The folder is made by the first start; it may have several names.
TEST_F(Claims, HoldWhateverThePathIs) {
  EXPECT_EQ(first->take({"--steps=9", "--checkpoint", path("a/run")}, true), "");
  fs::create_directories(folder / "a");
  EXPECT_NE(problem("--checkpoint", "a/run"), "");
  fs::create_directories(folder / "a/run");
  fs::create_directory_symlink("a/run", folder / "link");
  for (const char *name : {"a/run", "a/run/", "a/../a/run", "link"})
    EXPECT_NE(problem("--checkpoint", name), "") << name;
}

TEST_F(Claims, AreNotOfDevicesNorOfAStartsOwnProcesses) {
  EXPECT_EQ(first->take({"--steps=9", "--log", "/dev/null", "--checkpoint", path("run")}, true),
            "");
  EXPECT_EQ(SupervisorClaim().take({"--steps=9", "--log", "/dev/null"}, true), "");
  setenv(partita_rt::kMarksVariable, path("marks").c_str(), 1);
  EXPECT_EQ(problem("--checkpoint", "run", true), "");
  unsetenv(partita_rt::kMarksVariable);
  EXPECT_NE(problem("--checkpoint", "run", true), "");
}

TEST_F(Claims, AreNotInTheWayOfARunThatOnlyReads) {
  EXPECT_EQ(first->take({"--steps=9", "--checkpoint", path("run")}, true), "");
  for (const char *steps : {"--steps=0", "--resume"})
    EXPECT_EQ(SupervisorClaim().take({steps, "--checkpoint", path("run")}, false), "") << steps;
}

// One that was just killed has a moment to end.
TEST_F(Claims, AreWaitedForBriefly) {
  EXPECT_EQ(first->take({"--steps=9", "--checkpoint", path("run")}, true), "");
  std::thread later([&] {
    usleep(300'000);
    first.reset();
  });
  EXPECT_EQ(problem("--checkpoint", "run", true), "");
  later.join();
}

} // namespace
