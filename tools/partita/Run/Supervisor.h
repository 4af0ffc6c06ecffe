//===- Supervisor.h - starts a run again from its newest checkpoint ---------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_SUPERVISOR_H
#define PARTITA_TOOLS_RUN_SUPERVISOR_H

#include "tools/partita/Run/ProgramStarts.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace partita::tool {

/// Runs a program, and again, up to `maxRestarts` times, if what has ended it need not recur: the table
/// of docs/faults.md, decided by verdictOf. A restart goes on from the newest checkpoint that this run
/// has written or resumed from, and prints a line. Returns the exit status; ends this process by the
/// signal that ended the program, if it was one that asks a program to end.
int superviseRun(llvm::StringRef command, const std::vector<std::string> &arguments,
                 int64_t maxRestarts, ProgramStarts &starts);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_SUPERVISOR_H
