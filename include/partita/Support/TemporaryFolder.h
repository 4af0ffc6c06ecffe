//===- TemporaryFolder.h - folders that appear whole or not at all ------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_TEMPORARYFOLDER_H
#define PARTITA_SUPPORT_TEMPORARYFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include <csignal>
#include <iterator>
#include <string>

namespace partita {

/// A folder beside the one that it becomes; it disappears unless `becomeTarget` is called, also
/// where SIGINT, SIGTERM or SIGHUP end the process. One at a time. What returns a text returns what
/// went wrong, with the path before it, or nothing.
///
/// What SIGKILL or a crash leaves, the next one for the same target removes:
/// TARGET.partial-BOOT-xxxxxx of this boot of this machine that no process holds a lock on. The
/// kernel drops a lock with its process, so no number is mistaken for that of a dead one. Folders
/// of other machines that share the file system stay, since not every file system tells one machine
/// of another's locks; so do those from before a restart. Where the file system has no locks the
/// name has no BOOT, and the folder is nobody's to remove.
class TemporaryFolder {
public:
  explicit TemporaryFolder(llvm::StringRef target) : target(target) {}
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  /// Makes it, and the folders around the target.
  std::string create();
  std::string write(llvm::StringRef file, llvm::StringRef content);
  /// The path of a file in it.
  std::string in(llvm::StringRef file) const;
  /// Takes the target's place; what stands there goes.
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
  int descriptor = -1; ///< of the folder, locked
  struct sigaction before[std::size(kSignals)];
};

} // namespace partita

#endif // PARTITA_SUPPORT_TEMPORARYFOLDER_H
