//===- NamePattern.cpp ------------------------------------------------------------------------===//

#include "partita/Support/NamePattern.h"
#include "partita/Support/NearestNames.h"
#include "partita/Support/Quoted.h"

namespace partita {

/// Bytes of a pattern that a message shows.
static constexpr size_t mostShown = 200;

llvm::Expected<NamePattern> NamePattern::parse(llvm::StringRef text) {
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(text);
  if (!glob)
    return llvm::createStringError(quoted(text, mostShown) +
                                   " is not a glob pattern: " + llvm::toString(glob.takeError()));
  return NamePattern(text, std::move(*glob));
}

std::string NamePattern::unmatched(llvm::StringRef kind,
                                   llvm::ArrayRef<llvm::StringRef> names) const {
  return "no " + kind.str() + " matches " + quoted(text, mostShown) + nearestNames(text, names);
}

} // namespace partita
