//===- FolderLock.h - keeps a run's folder between two starts -----------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_FOLDERLOCK_H
#define PARTITA_TOOLS_RUN_FOLDERLOCK_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::tool {

/// The lock that rank 0 holds on the folder for checkpoints. Its supervisor holds it between two starts, so no other run, not even
/// one that was started without `partita run`, takes the folder meanwhile.
class FolderLock {
public:
  FolderLock() = default;
  ~FolderLock() { release(); }
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

  /// Waits until no process of the start that has ended holds the lock any more (Patience::Lock), or a signal asks this process
  /// to end, and takes it. Says so after a second. Returns whether the folder was free; else the next start reports that
  /// another run writes into it. `command` is named in messages.
  bool take(llvm::StringRef command, const std::string &folder);
  /// For the next start's rank 0.
  void release();

private:
  int descriptor = -1;
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_FOLDERLOCK_H
