//===- NamePattern.h - glob patterns for names --------------------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_NAMEPATTERN_H
#define PARTITA_SUPPORT_NAMEPATTERN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"
#include <string>

namespace partita {

/// A glob pattern for names of parameters or tensors, for --freeze, --trainable and --shard, with
/// its error messages.
class NamePattern {
public:
  /// Parses a pattern. An error reads "'[' is no glob pattern: REASON". The text must outlive the
  /// pattern.
  static llvm::Expected<NamePattern> parse(llvm::StringRef text);

  bool match(llvm::StringRef name) const { return glob.match(name); }
  /// Returns true if it is a name, without wildcards.
  bool isName() const { return text.find_first_of("*?[]{}\\") == llvm::StringRef::npos; }
  /// Returns "no KIND matches 'h.2.*'", and the names that the user may have meant.
  std::string unmatched(llvm::StringRef kind, llvm::ArrayRef<llvm::StringRef> names) const;

private:
  NamePattern(llvm::StringRef text, llvm::GlobPattern glob) : text(text), glob(std::move(glob)) {}

  llvm::StringRef text;
  llvm::GlobPattern glob;
};

} // namespace partita

#endif // PARTITA_SUPPORT_NAMEPATTERN_H
