//===- TemporaryFolder.h - folders that appear complete or not at all ---------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_TEMPORARYFOLDER_H
#define PARTITA_SUPPORT_TEMPORARYFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include <csignal>
#include <iterator>
#include <string>

namespace partita {

/// A folder next to the target that it becomes. It is removed unless `becomeTarget` is called, even
/// if SIGINT, SIGTERM or SIGHUP ends the process. While one exists, the only others are in it, and
/// are removed with it. Functions that return text return what went wrong, after the path, or "".
///
/// If SIGKILL or a crash leaves a folder behind, the next one for the same target removes it:
/// TARGET.partial-BOOT-xxxxxx of this boot of this machine, if no process holds a lock on it. The
/// kernel drops a lock with its process, so a reused process ID causes no mistake. Folders of other
/// machines that share the file system stay, since not every file system shows one machine's locks
/// to another; so do those from before a restart. If the file system has no locks, the name has no
/// BOOT, and nothing removes the folder.
class TemporaryFolder {
public:
  explicit TemporaryFolder(llvm::StringRef target) : target(target) {}
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  /// Creates it, and the folders around the target.
  std::string create();
  std::string write(llvm::StringRef file, llvm::StringRef content);
  /// Returns the path of a file in it.
  std::string in(llvm::StringRef file) const;
  /// Takes the target's place, and removes what was there.
  std::string becomeTarget();

private:
  std::string createLocked(llvm::StringRef boot);
  void removeAbandoned(llvm::StringRef boot) const;
  void unlock();
  void watchSignals();
  void unwatchSignals();

  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  std::string target;
  llvm::SmallString<128> name;
  int descriptor = -1;  ///< of the folder, locked
  bool watches = false; ///< for signals, unless a folder around it does
  struct sigaction before[std::size(kSignals)];
};

} // namespace partita

#endif // PARTITA_SUPPORT_TEMPORARYFOLDER_H
