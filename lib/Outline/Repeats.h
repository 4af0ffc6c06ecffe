//===- Repeats.h - sequences of equal tokens, worth writing once --------------------*- C++ -*-===//

#ifndef PARTITA_LIB_LOWER_REPEATS_H
#define PARTITA_LIB_LOWER_REPEATS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::rt {

/// `length` tokens from each of `starts` on, which are in order and do not overlap.
struct Repeat {
  unsigned length = 0;
  llvm::SmallVector<unsigned> starts;
};

/// Which repeated sequences to write once, so that few lines are left. A token is `lines[i]` lines
/// of text; a call of a sequence is one, and its row of data some. Greedily the one that saves most
/// lines first, if it can begin where a layer does rather there; what saves next to nothing is
/// left, and what is no layers: `layers[i]` is the layer's number that a token belongs to, 0 if
/// none, and occurrences in one and the same layer, or just two in none, do not count. No token is
/// in two of them.
llvm::SmallVector<Repeat> chooseRepeats(llvm::ArrayRef<unsigned> tokens,
                                        llvm::ArrayRef<unsigned> lines,
                                        llvm::ArrayRef<unsigned> layers);

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_REPEATS_H
