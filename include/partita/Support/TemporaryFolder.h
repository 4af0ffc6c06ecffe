//===- TemporaryFolder.h - folders that appear complete or not at all ---------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_TEMPORARYFOLDER_H
#define PARTITA_SUPPORT_TEMPORARYFOLDER_H

#include "partita/Support/LockedFolder.h"
#include "llvm/ADT/StringRef.h"
#include <csignal>
#include <iterator>
#include <string>

namespace partita {

/// A folder next to the target that it becomes. It is removed unless `becomeTarget` is called, even
/// if SIGINT, SIGTERM or SIGHUP ends the process. While one exists, the only others are in it, and
/// are removed with it. Functions that return text return what went wrong, after the path, or "".
///
/// If SIGKILL or a crash leaves a folder behind, the next one for the same target removes it
/// (LockedFolder.h): TARGET.partial-BOOT-xxxxxx.
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
  void watchSignals();
  void unwatchSignals();

  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  std::string target;
  LockedFolder folder;
  bool watches = false; ///< for signals, unless a folder around it does
  struct sigaction before[std::size(kSignals)];
};

} // namespace partita

#endif // PARTITA_SUPPORT_TEMPORARYFOLDER_H
