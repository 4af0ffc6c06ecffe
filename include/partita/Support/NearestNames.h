//===- NearestNames.h - suggestions for misspelled names ----------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_NEARESTNAMES_H
#define PARTITA_SUPPORT_NEARESTNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <string>

namespace partita {

/// Returns the max edit distance of a typo.
inline unsigned farthestError(llvm::StringRef word) {
  return std::max<unsigned>(2, word.size() / 3);
}

/// Returns the one of `known` that is nearest to `word`, ignoring case; "" if all are farther away.
/// Defined in the header for libraries that link only LLVM's Support.
inline llvm::StringRef nearestName(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known,
                                   unsigned farthest) {
  llvm::StringRef best;
  unsigned bestDistance = farthest + 1;
  for (llvm::StringRef name : known)
    if (unsigned distance = word.edit_distance_insensitive(name); distance < bestDistance) {
      bestDistance = distance;
      best = name;
    }
  return best;
}
inline llvm::StringRef nearestName(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known) {
  return nearestName(word, known, farthestError(word));
}

/// Returns "; 'x.h.*.w' matches 'x.h.0.w' and 3 more" for a glob pattern 'h.*.w', which lacks the
/// beginning or end of names; else "; the nearest names are 'a', 'b'": at most three names, by edit
/// distance from the pattern without its stars. Empty if there are no names.
std::string nearestNames(llvm::StringRef pattern, llvm::ArrayRef<llvm::StringRef> names);

} // namespace partita

#endif // PARTITA_SUPPORT_NEARESTNAMES_H
