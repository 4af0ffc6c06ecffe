//===- LockWait.h - takes the lock on a run's folder between two starts ---------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_LOCKWAIT_H
#define PARTITA_TOOLS_RUN_LOCKWAIT_H

#include "runtime/include/partita_rt/owned_paths.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::tool {

/// Waits until no process of the start that has ended holds the folder's lock any more (Patience::Lock), or a signal asks this process
/// to end, and takes it: no other run, not even one that was started without `partita run`, has the folder until the next
/// start's rank 0 takes it. Says so after a second. Returns false if the lock was held all the time; then the next start reports
/// that another run writes into the folder. `command` is named in messages.
bool takeLockWhenFree(partita_rt::PathLock &lock, llvm::StringRef command,
                      const std::string &folder);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_LOCKWAIT_H
