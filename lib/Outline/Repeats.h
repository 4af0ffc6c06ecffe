//===- Repeats.h - sequences of equal tokens, worth writing once --------------------*- C++ -*-===//

#ifndef PARTITA_LIB_OUTLINE_REPEATS_H
#define PARTITA_LIB_OUTLINE_REPEATS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::rt {

/// `length` tokens from each of `starts`, which ascend and do not overlap.
struct Repeat {
  unsigned length = 0;
  llvm::SmallVector<unsigned> starts;
};

/// Chooses repeated sequences to write once, to minimize lines of text. Token i takes `lines[i]`
/// lines; a call of a sequence takes one, and its row of data some. Greedy: takes the sequence that
/// saves the most lines, preferably starting at a layer boundary. Sequences that save little, or
/// that are not layers, are left alone: `layers[i]` is the number of token i's layer, 0 if it has
/// none, and occurrences within one layer, or only two outside layers, do not count. Sequences do
/// not overlap.
llvm::SmallVector<Repeat> chooseRepeats(llvm::ArrayRef<unsigned> tokens,
                                        llvm::ArrayRef<unsigned> lines,
                                        llvm::ArrayRef<unsigned> layers);

} // namespace partita::rt

#endif // PARTITA_LIB_OUTLINE_REPEATS_H
