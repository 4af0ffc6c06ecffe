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

/// Runs a program, and again, up to `maxRestarts` times, if it has failed in a way that may not
/// recur: a process was killed, or failed after it had completed a step (partita_rt/exit_status.h).
/// If two starts in succession end with the same result of the same step, such as a loss that is
/// NaN, it would recur (partita_rt/start_marks.h). A restart that fails before its first step is
/// followed by another after a second, and that by one with fewer ranks, if that is possible; else,
/// if the run has trained before, or a launcher that has started ranks here does not say why, by
/// others, up to five in succession, after 1, 2, 4, 8 and 16 seconds (Verdict.h). A restarted run
/// goes on from the newest checkpoint that this one has written or resumed from. Prints a line for
/// each restart. Returns the exit code; ends this process by the signal that ended the program, if
/// it was one that asks a program to end.
int superviseRun(llvm::StringRef command, const std::vector<std::string> &arguments,
                 int64_t maxRestarts, Starts &starts);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_SUPERVISOR_H
