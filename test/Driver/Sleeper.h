//===- Sleeper.h - a process like a rank's, which does nothing ---------------------*- C++ -*-===//

#ifndef PARTITA_TEST_DRIVER_SLEEPER_H
#define PARTITA_TEST_DRIVER_SLEEPER_H

#include <csignal>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace partita::tool {

/// A copy of `sleep`, and a process that executes it.
struct Sleeper {
  /// `obeys`: SIGTERM ends it.
  explicit Sleeper(bool obeys = true) {
    std::filesystem::create_directory(folder);
    std::filesystem::copy_file("/bin/sleep", program);
    process = fork();
    if (process == 0) {
      if (!obeys)
        signal(SIGTERM, SIG_IGN);
      execl(program.c_str(), "sleep", "100", nullptr);
      _exit(127);
    }
    while (std::filesystem::read_symlink("/proc/" + std::to_string(process) + "/exe") != program)
      usleep(1000);
  }
  ~Sleeper() {
    if (waitpid(process, nullptr, WNOHANG) == 0) { // else somebody has waited for it
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
    std::filesystem::remove_all(folder);
  }
  std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                 ("ranks-below-" + std::to_string(getpid())),
                        program = folder / "program";
  pid_t process = 0;
};

} // namespace partita::tool

#endif // PARTITA_TEST_DRIVER_SLEEPER_H
