// What one run at a time writes, its folder for checkpoints and its log: rank 0 holds the lock on each, and its supervisor
// between two starts. The kernel drops a lock with its process.

#ifndef PARTITA_RT_OWNED_PATHS_H
#define PARTITA_RT_OWNED_PATHS_H

#include "abandoned.h"

#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace partita_rt {

/// A path that a run has for itself.
struct OwnedPath {
  const char *option; ///< that names it
  const char *writes; ///< how it is written
  const char *noun;
};
constexpr OwnedPath kOwnedFolder{"--checkpoint", "writes into", "folder"};
constexpr OwnedPath kOwnedLog{"--log", "writes", "log"};

/// "--log: another run writes run.csv; give each run a log of its own"; `who`: what is known of the other run.
inline std::string ownedByAnotherText(const OwnedPath &owned, const std::string &path,
                                      const std::string &who = "") {
  return std::string(owned.option) + ": another run " + owned.writes + " " + path +
         (who.empty() ? "" : ": " + who) + "; give each run a " + owned.noun + " of its own";
}

/// The lock on a folder or a regular file, until it is released or destroyed.
class PathLock {
public:
  PathLock() = default;
  ~PathLock() { release(); }
  PathLock(const PathLock &) = delete;
  PathLock &operator=(const PathLock &) = delete;

  enum class Result {
    Taken,
    ByAnother, ///< another process holds it
    NoPath     ///< it is neither, or cannot be opened: errno says why
  };
  Result take(const std::string &path) {
    release();
    struct stat status;
    if (stat(path.c_str(), &status) != 0)
      return Result::NoPath;
    if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) { // opening a pipe would wait
      errno = EINVAL;
      return Result::NoPath;
    }
    descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      return Result::NoPath;
    if (tryLock(descriptor))
      return Result::Taken;
    release();
    return Result::ByAnother;
  }
  void release() {
    if (descriptor >= 0)
      close(descriptor);
    descriptor = -1;
  }

private:
  int descriptor = -1;
};

} // namespace partita_rt

#endif // PARTITA_RT_OWNED_PATHS_H
