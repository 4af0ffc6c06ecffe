//===- ForcedEnd.h - ends processes that do not end by themselves -----------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_FORCEDEND_H
#define PARTITA_TOOLS_RUN_FORCEDEND_H

#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <set>
#include <sys/types.h>

namespace partita::tool {

/// Ends processes by SIGTERM and, if that does not end them, by SIGKILL.
class ForcedEnd {
public:
  /// `toEnd`: seconds from the first SIGTERM to SIGKILL.
  explicit ForcedEnd(double toEnd) : toEnd(toEnd) {}

  /// Sends each process SIGTERM when it is seen for the first time, and all of them SIGKILL once the time is over. `now`:
  /// seconds by a clock of the caller's. Called again while there are any.
  void send(llvm::ArrayRef<pid_t> processes, double now);
  /// Another signal has asked them to end, which counts as SIGTERM.
  void noteAsked(llvm::ArrayRef<pid_t> processes, double now);
  /// Sends SIGKILL at once.
  void kill(llvm::ArrayRef<pid_t> processes);

  /// Has it sent any process a signal by itself?
  bool hasSent() const { return sent; }
  /// Seconds since the first one was asked to end.
  double secondsSince(double now) const { return since ? now - *since : 0; }

private:
  double toEnd;
  bool sent = false;
  std::optional<double> since; ///< when the first one was asked
  std::set<pid_t> asked;
};

/// Kills a child, or a group of processes if it is negative, and waits for it.
void killAndWait(pid_t process);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_FORCEDEND_H
