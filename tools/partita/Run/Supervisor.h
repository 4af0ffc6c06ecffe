//===- Supervisor.h - starts a run again from its newest checkpoint ---------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_SUPERVISOR_H
#define PARTITA_TOOLS_RUN_SUPERVISOR_H

#include "tools/partita/Run/Processes.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace partita::tool {

/// Who waits for a program's processes, and starts them again.
struct Supervision {
  int64_t maxRestarts = 0; ///< 0: none
  /// The command that starts the processes, such as mpirun -np {ranks}.
  std::vector<std::string> launcher;
  std::string hostDiscovery; ///< a command that prints the hosts there are (HostDiscovery.h)

  bool waits() const { return maxRestarts > 0 || !launcher.empty(); }
};

/// How a supervised program is started.
class Starts {
public:
  virtual ~Starts() = default;
  /// Chooses the processes of the next start; with `fewer`, fewer than last time. Returns why none
  /// can be started, or "".
  virtual std::string prepare(bool fewer) = 0;
  /// Does the supervisor choose the number of ranks, and are fewer possible than last time?
  virtual bool hasFewer() const = 0;
  /// What has changed since the last start, for a message: "with 2 ranks instead of 4"; or "".
  virtual std::string change() const = 0;
  /// Starts the program with these arguments, and waits for it.
  virtual Outcome run(std::vector<std::string> arguments) = 0;
};

/// Runs a program, and again, up to `maxRestarts` times, if what has ended it need not recur: the table
/// of docs/faults.md, decided by verdictOf. A restart goes on from the newest checkpoint that this run
/// has written or resumed from, and prints a line. Returns the exit status; ends this process by the
/// signal that ended the program, if it was one that asks a program to end.
int superviseRun(llvm::StringRef command, const std::vector<std::string> &arguments,
                 int64_t maxRestarts, Starts &starts);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_SUPERVISOR_H
