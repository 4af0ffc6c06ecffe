//===- FolderLock.h - whether a run still writes into its folder --------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_FOLDERLOCK_H
#define PARTITA_TOOLS_RUN_FOLDERLOCK_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::tool {

/// Waits until no process of the run that has ended holds the folder's lock any more (Patience::Lock), or a signal asks
/// this one to end. Says so after a second. Returns whether the folder is free; else the next start reports that another run
/// writes into it. `command` is named in messages.
bool waitForLock(llvm::StringRef command, const std::string &folder);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_FOLDERLOCK_H
