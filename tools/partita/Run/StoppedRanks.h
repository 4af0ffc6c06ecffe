//===- StoppedRanks.h - ranks that a signal has stopped ---------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_STOPPEDRANKS_H
#define PARTITA_TOOLS_RUN_STOPPEDRANKS_H

#include "llvm/ADT/ArrayRef.h"
#include <map>
#include <optional>
#include <sys/types.h>

namespace partita::tool {

/// Watches for ranks of this host that a signal has stopped. Ranks report that of each other, but
/// not before they have found each other or once they part, and not if all of them are one process.
class StoppedRanks {
public:
  /// `timeout`: seconds after which ranks report each other. They report a stopped one first, and this
  /// acts only if they do not. If all ranks of this host are stopped, they may all continue together, but
  /// ranks of other hosts may wait for them: they get twice the time.
  explicit StoppedRanks(double timeout) : timeout(timeout) {}
  /// All ranks are one process, which nobody else watches: it is reported after `timeout`.
  void setAlone() { alone = true; }

  /// Looks at the ranks that there are; `passed` seconds have passed since the last look. Time for
  /// which the caller is stopped as well does not pass. Returns a rank that has been stopped for
  /// too long.
  std::optional<pid_t> look(llvm::ArrayRef<pid_t> ranks, double passed);

  /// Were all stopped at the last look?
  bool areAll() const { return all; }
  /// Returns for how many seconds the rank has been stopped.
  double secondsOf(pid_t rank) const { return stopped.at(rank); }

private:
  double timeout;
  bool alone = false, all = false;
  std::map<pid_t, double> stopped;
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_STOPPEDRANKS_H
