// Ranks that are processes, for tests: forked, with their output on stderr and their exit status.

#ifndef PARTITA_TEST_RUNTIME_FORKED_RANKS_H
#define PARTITA_TEST_RUNTIME_FORKED_RANKS_H

#include "processes/rendezvous.h"
#include "processes/wire.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace partita_rt::processes {

struct Ended {
  pid_t process;
  int code; ///< the exit code, or minus the signal
  std::string text;
};

/// Runs body(rank) in one process per rank; exit code 0 if it returns, 3 with its message if it
/// throws. A stopped process is killed when the others have ended.
inline std::vector<Ended> runRanks(int ranks, const std::function<void(int)> &body) {
  std::vector<Ended> all;
  std::vector<std::FILE *> outputs;
  for (int rank = 0; rank < ranks; ++rank) {
    outputs.push_back(std::tmpfile());
    pid_t child = fork();
    if (child == 0) {
      alarm(300); // generous, for a busy machine
      dup2(fileno(outputs.back()), STDERR_FILENO);
      try {
        body(rank);
      } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(3);
      }
      std::fflush(stderr);
      _exit(0);
    }
    all.push_back({child, 0, ""});
  }
  std::vector<int> statuses(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank)
    waitpid(all[rank].process, &statuses[rank], WUNTRACED);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    int status = statuses[rank];
    if (WIFSTOPPED(status)) {
      kill(all[rank].process, SIGKILL);
      waitpid(all[rank].process, &status, 0);
    }
    all[rank].code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    std::rewind(outputs[rank]);
    char buffer[4096];
    while (size_t n = std::fread(buffer, 1, sizeof(buffer), outputs[rank]))
      all[rank].text.append(buffer, n);
    std::fclose(outputs[rank]);
  }
  return all;
}

/// Returns the output of all of them.
inline std::string textOf(const std::vector<Ended> &all) {
  std::string text;
  for (const Ended &each : all)
    text += each.text;
  return text;
}

/// Returns the environment of a rank of this test, on this machine, at a port that was just free.
inline LaunchEnvironment environmentOf(int rank, int ranks, int port) {
  LaunchEnvironment environment;
  environment.launcher = "test";
  environment.rank = rank;
  environment.ranks = ranks;
  environment.address = "127.0.0.1";
  environment.ports = {port};
  environment.run = "test " + std::to_string(port);
  return environment;
}
/// Returns a free port below the range of ephemeral ports, which the ranks themselves take.
inline int freePort() {
  std::random_device random;
  while (true) {
    int port = 10'000 + int(random() % 20'000);
    if (listenOn(port).isOpen())
      return port;
  }
}

} // namespace partita_rt::processes

#endif // PARTITA_TEST_RUNTIME_FORKED_RANKS_H
