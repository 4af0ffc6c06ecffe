//===- SupervisorClaim.h - whose a run's files are between two starts -------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_SUPERVISORCLAIM_H
#define PARTITA_TOOLS_RUN_SUPERVISORCLAIM_H

#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace partita::tool {

/// The claim of a supervisor to its run's folder of checkpoints and log, from before the first start until its process ends.
/// The locks of ranks end with the ranks, so between two starts another run could take the folder, and the restart would go
/// on from that run's checkpoints.
///
/// A claim is a socket with an abstract name, made from the path: the kernel drops it with the process, it leaves no file, and the
/// folder need not exist yet. It is seen on the supervisor's host, by `partita run`. The lock on the folder (owned_paths.h) keeps others out as well.
class SupervisorClaim {
public:
  SupervisorClaim() = default;
  ~SupervisorClaim();
  SupervisorClaim(const SupervisorClaim &) = delete;
  SupervisorClaim &operator=(const SupervisorClaim &) = delete;

  /// Checks that no other supervisor has claimed what --checkpoint and --log of these arguments name, and claims it if
  /// `supervises`. A supervisor that is just ending gets a second for it. Returns the problem, or "". A process that belongs to a
  /// supervisor's start is part of that run, and a run without --steps writes nothing: neither is checked.
  std::string take(llvm::ArrayRef<std::string> arguments, bool supervises);

private:
  std::vector<int> sockets;
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_SUPERVISORCLAIM_H
