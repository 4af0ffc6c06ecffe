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
  void watchSignals();
  void unwatchSignals();

  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  std::string target;
  llvm::SmallString<128> name;
  struct sigaction before[std::size(kSignals)];
};

} // namespace partita

#endif // PARTITA_SUPPORT_TEMPORARYFOLDER_H
