// Prints past threads that are stuck (last_line.h).

#include "common/last_line.h"
#include "partita_rt/printable.h"

#include <cstdio>
#include <unistd.h>

namespace partita_rt {

void flushUnlessStuck() {
  if (ftrylockfile(stdout) != 0)
    return;
  std::fflush(stdout);
  funlockfile(stdout);
}

void printLastLine(const std::string &name, const std::string &error) {
  flushUnlessStuck();
  std::string line = (name.empty() ? "" : name + ": ") + "error: " + printable(error) + "\n";
  for (size_t at = 0; at < line.size();) {
    ssize_t n = write(STDERR_FILENO, line.data() + at, line.size() - at);
    if (n <= 0)
      break;
    at += size_t(n);
  }
}

} // namespace partita_rt
