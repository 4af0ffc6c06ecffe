//===- RanksBelowTests.cpp - which processes are a launcher's ranks ---------------------------===//

#include "tools/partita/Run/RanksBelow.h"
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace partita::tool;
namespace fs = std::filesystem;

namespace {

/// A copy of `sleep`, and a process that executes it.
struct Sleeper {
  Sleeper() {
    fs::create_directory(folder);
    fs::copy_file("/bin/sleep", program);
    process = fork();
    if (process == 0) {
      execl(program.c_str(), "sleep", "100", nullptr);
      _exit(127);
    }
    while (fs::read_symlink("/proc/" + std::to_string(process) + "/exe") != program)
      usleep(1000);
  }
  ~Sleeper() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    fs::remove_all(folder);
  }
  fs::path folder = fs::temp_directory_path() / ("ranks-below-" + std::to_string(getpid())),
           program = folder / "program";
  pid_t process = 0;
};

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
