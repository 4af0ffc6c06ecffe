//===- RunProgram.h - runs a program: which, by whom, how often -------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_RUNPROGRAM_H
#define PARTITA_TOOLS_RUN_RUNPROGRAM_H

#include "tools/partita/Run/Supervisor.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace partita::tool {

/// Runs the program in `folder`, or one of those that --elastic made there, with these arguments,
/// as one process or one per rank: a GPU program that no launcher has started yet is started once
/// per rank on this host, with torchrun's variables. Returns its exit code, 0 only if all ranks
/// have ended with 0; does not return if this process becomes the program. If a rank fails, the
/// others are ended, and if this process dies, all of them; SIGINT, SIGTERM, SIGHUP and SIGUSR1 are
/// passed on to them, and end this process when they have ended the ranks. `command` is named in
/// messages.
int runProgram(llvm::StringRef command, llvm::StringRef folder,
               llvm::ArrayRef<std::string> arguments, const Supervision &supervision = {});

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_RUNPROGRAM_H
