//===- Patience.h - how long `partita run` waits for what --------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_PATIENCE_H
#define PARTITA_TOOLS_RUN_PATIENCE_H

#include <string>

namespace partita::tool {

/// What a run's supervisor waits for at most so long, where the site decides how long is right: its hosts, its file
/// systems. PARTITA_PATIENCE changes it, such as PARTITA_PATIENCE=hosts:60,orphans:10. How long failed ranks
/// have to end (ChildProcesses.cpp), and the pauses between restarts (secondsBefore()), are constants.
enum class Patience {
  Discovery, ///< "discovery", 60 s: --host-discovery's command
  Folder,    ///< "folder", 30 s: a folder for checkpoints that is away, until the run ends
  Hosts,     ///< "hosts", 600 s: hosts for the smallest program
  Launcher, ///< "launcher", 10 s: a launcher that outlives the ranks of this host, which have not done their work
  Lock,     ///< "lock", 30 s: processes of the last start that still hold the folder's lock
  Mark,    ///< "mark", 5 s: ranks without their launcher, until they say that they are about to end
  Orphans, ///< "orphans", 120 s: the same after SIGTERM, until SIGKILL
};

/// Returns seconds.
int secondsOf(Patience what);
/// The same for a message: "10 minutes", "90 s".
std::string textOf(Patience what);
/// Returns what is wrong with PARTITA_PATIENCE; or "".
std::string problemOfPatience();

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_PATIENCE_H
