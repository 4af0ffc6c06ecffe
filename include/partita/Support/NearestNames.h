//===- NearestNames.h - what a user probably meant ----------------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_NEARESTNAMES_H
#define PARTITA_SUPPORT_NEARESTNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita {

/// "; 'x.h.*.w' matches 'x.h.0.w' and 3 more" of a glob pattern 'h.*.w', which lacks the beginning or
/// the end of names; else "; the nearest names are 'a', 'b'": of three names at most, by edit
/// distance of what the pattern says without its stars. Nothing where there are no names.
std::string nearestNames(llvm::StringRef pattern, llvm::ArrayRef<llvm::StringRef> names);

} // namespace partita

#endif // PARTITA_SUPPORT_NEARESTNAMES_H
