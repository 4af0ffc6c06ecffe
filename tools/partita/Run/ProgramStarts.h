//===- ProgramStarts.h - which program starts, with which processes ---------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_PROGRAMSTARTS_H
#define PARTITA_TOOLS_RUN_PROGRAMSTARTS_H

#include "tools/partita/Program.h"
#include "tools/partita/Run/ChildProcesses.h"
#include "tools/partita/Run/HostDiscovery.h"
#include "llvm/Support/JSON.h"
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

/// The starts of one program, or of those that --elastic made of one model.
class ProgramStarts {
public:
  ProgramStarts(llvm::StringRef command, const Supervision &supervision)
      : command(command), supervision(supervision) {}

  /// Reads the folder. Returns the problem, or "".
  std::string read(llvm::StringRef folder);
  /// Takes the program of this many ranks, which are started already or were asked for. Returns the problem,
  /// to follow the folder's name: "has programs for 2 or 4 ranks, not for 3"; or "".
  std::string choose(int64_t ranks);
  const std::string &executable() const { return programs[chosen].executable; }
  int64_t ranks() const { return programs[chosen].ranks; }
  /// The chosen program's manifest.
  const llvm::json::Object &manifest() const { return programs[chosen].manifest; }

  /// Chooses the processes of the next start; with `fewer`, fewer than last time. Returns why none
  /// can be started, or "".
  std::string prepare(bool fewer);
  /// Does the supervisor choose the number of ranks, and are fewer possible than last time?
  bool hasFewer() const { return chosen > 0 && supervision.hostDiscovery.empty(); }
  /// Has the chosen program's executable been replaced since the run began? Then what has happened, else "".
  std::string checkUnchanged() const;
  /// What has changed since the last start, for a message: "with 2 ranks instead of 4"; or "".
  std::string change() const;
  /// Starts the program with these arguments, and waits for it.
  Outcome run(std::vector<std::string> arguments);
  /// Is each rank a process that this one starts?
  bool startsRanks() const {
    return supervision.launcher.empty() && programs[chosen].ranks > 1 &&
           targetOf(manifest()).ranksAreProcesses();
  }
  /// Has --elastic made the folder? Then it has programs for several numbers of ranks.
  bool isElastic() const { return !sizesText.empty(); }
  /// Which numbers: "2, 4 or 8 ranks"; empty unless it is elastic.
  const std::string &sizes() const { return sizesText; }

private:
  struct Program {
    std::string executable;
    llvm::json::Object manifest;
    int64_t ranks;
    std::optional<uint64_t>
        fingerprint; ///< of the executable, when a run began that may be restarted
  };
  std::string add(llvm::StringRef folder);
  std::string waitForHosts();
  std::vector<std::string> launcherWords() const;

  llvm::StringRef command;
  const Supervision &supervision;
  std::vector<Program> programs;       ///< fewest ranks first
  std::string sizesText;               ///< of several programs
  size_t chosen = 0, chosenBefore = 0; ///< in `programs`: of the next start, and of the one before
  bool wasStarted = false;
  Hosts hosts;
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_PROGRAMSTARTS_H
