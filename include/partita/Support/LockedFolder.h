//===- LockedFolder.h - folders whose owner is known to live ------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_LOCKEDFOLDER_H
#define PARTITA_SUPPORT_LOCKEDFOLDER_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita {

/// A folder PREFIX-BOOT-xxxxxx, on which this process holds a lock (partita_rt/abandoned.h).
///
/// If SIGKILL or a crash leaves one behind, the next one with the same prefix removes it: of this boot
/// of this machine, of the same user, if no process holds a lock on it. The kernel drops a lock with its
/// process, so a reused process ID causes no mistake. Folders of other machines that share the file
/// system stay, since not every file system shows one machine's locks to another; so do those from
/// before a restart. If the file system has no locks, the name has no BOOT, and nothing removes the folder.
class LockedFolder {
public:
  LockedFolder() = default;
  ~LockedFolder() { unlock(); }
  LockedFolder(const LockedFolder &) = delete;
  LockedFolder &operator=(const LockedFolder &) = delete;

  /// Removes abandoned ones, and makes one, which only this user may read. Returns what went wrong, after
  /// the prefix, or "".
  std::string create(llvm::StringRef prefix);
  /// "" if there is none.
  const std::string &path() const { return name; }
  /// It has another name now, or is gone.
  void release();

private:
  void unlock();
  std::string name;
  int descriptor = -1; ///< of the folder, locked
};

} // namespace partita

#endif // PARTITA_SUPPORT_LOCKEDFOLDER_H
