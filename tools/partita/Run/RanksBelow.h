//===- RanksBelow.h - the ranks that a launcher has started on this host ----------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_RANKSBELOW_H
#define PARTITA_TOOLS_RUN_RANKSBELOW_H

#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <optional>
#include <sys/types.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace partita::tool {

/// Watches a launcher's processes that execute a program. A launcher may outlive all ranks of its
/// host: Open MPI's mpirun waits without end for a host that no longer answers, after its own ranks
/// have reported that and ended.
class RanksBelow {
public:
  /// `program`: the path of the ranks' executable. It may lead to another file later, when the program is
  /// compiled again: the ranks are those that execute what it leads to now.
  RanksBelow(pid_t launcher, llvm::StringRef program);
  /// Watches those of this process, which ranks of the launcher become when it ends before them.
  void adopt() { launcher = getpid(); }

  /// Returns those that there are now.
  std::vector<pid_t> find();
  /// Has find() ever found one?
  bool haveBeen() const { return seen.has_value(); }
  /// Returns true once there have been ranks, and find(), which is called regularly, has found none
  /// for kSecondsAlone.
  bool haveLeft() const;

  static constexpr int kSecondsAlone = 10;

private:
  using Clock = std::chrono::steady_clock;
  void addBelow(pid_t process, int depth, std::vector<pid_t> &ranks) const;

  pid_t launcher;
  std::pair<dev_t, ino_t> program;       ///< the executable
  std::optional<Clock::time_point> seen; ///< last time that there was a rank
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_RANKSBELOW_H
