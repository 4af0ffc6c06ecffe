// A rank's pieces of a program's tensors, and which of them a checkpoint gets from whom.

#ifndef PARTITA_RT_COMMON_PIECES_H
#define PARTITA_RT_COMMON_PIECES_H

#include "partita_rt/program.h"
#include "partita_rt/slices.h"

namespace partita_rt {

/// One tensor of a rank, or of ranks of other stages.
struct TensorPiece {
  const char *name;
  DType dtype;
  Shape global, local;
  Splits splits;
  void *data; ///< null where the rank's stage does not hold it
  StageSet stages;
};

/// All of the program's, in the same order on every rank.
std::vector<TensorPiece> parameterPieces(const Rank &rank);
/// The same of parameters, optimizer states and scalar states.
std::vector<TensorPiece> persistentPieces(const Rank &rank);
/// Those of them that the rank's stage holds.
std::vector<TensorPiece> heldPieces(const Rank &rank);

std::vector<int64_t> sizesOf(const Shape &shape);

/// What the rank at these coordinates has of a tensor, padding left out; no elements where all is
/// padding.
Slices slicesOf(const Program &program, const int *coordinates, const Shape &global,
                const Splits &splits);

/// Is the rank at these coordinates the first of those that have the same piece?
bool isFirstOwner(const Program &program, const int *coordinates, const TensorPiece &piece);

/// Does rank 0 have less than the whole of anything that a checkpoint holds?
bool isSharded(const Program &program);

/// n elements of the whole from `global` on, which are those of the piece from `local` on.
struct Run {
  int64_t global, local, count;
};
/// The runs of a piece without its padding, in the order of the whole, which is also the piece's.
std::vector<Run> runsOf(const Rank &rank, const TensorPiece &piece);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_PIECES_H
