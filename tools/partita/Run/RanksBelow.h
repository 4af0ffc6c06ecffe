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
  /// Ranks are the processes that execute the file which the path `program` names now, even if compiling again replaces
  /// it later.
  RanksBelow(pid_t launcher, llvm::StringRef program);
  /// Watches those of this process, which ranks of the launcher become when it ends before them.
  void adopt() { launcher = getpid(); }

  /// Returns those that there are now.
  std::vector<pid_t> find();
  /// Returns all processes below the launcher, ranks or not, each before its own.
  std::vector<pid_t> findProcesses() const;
  /// Has find() ever found one?
  bool haveBeen() const { return seen.has_value(); }
  /// Returns true once there have been ranks, and find(), which is called regularly, has found none
  /// for so many seconds (Patience::Launcher).
  bool haveLeft() const;

private:
  using Clock = std::chrono::steady_clock;
  bool isRank(pid_t process) const;

  pid_t launcher;
  std::pair<dev_t, ino_t> program;       ///< the executable
  std::optional<Clock::time_point> seen; ///< last time that there was a rank
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_RANKSBELOW_H
