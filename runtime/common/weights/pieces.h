// A rank's pieces of a program's tensors, and which of them a checkpoint gets from whom.

#ifndef PARTITA_RT_COMMON_PIECES_H
#define PARTITA_RT_COMMON_PIECES_H

#include "partita_rt/program.h"
#include "partita_rt/slices.h"

namespace partita_rt {

/// One tensor of a rank.
struct TensorPiece {
  const char *name;
  DType dtype;
  Shape global, local;
  Splits splits;
  void *data;
};

std::vector<TensorPiece> parameterPieces(const Rank &rank);
/// Parameters, optimizer states and scalar states.
std::vector<TensorPiece> persistentPieces(const Rank &rank);

std::vector<int64_t> sizesOf(const Shape &shape);

/// What the rank at these coordinates has of a tensor, padding left out; no elements where all is
/// padding.
Slices slicesOf(const Program &program, const int *coordinates, const Shape &global,
                const Splits &splits);

/// Is this the first of the ranks that have the same piece?
bool isFirstOwner(const Program &program, const int *coordinates, const Splits &splits);

/// Does a rank have less than the whole of anything that a checkpoint holds?
bool isSplit(const Program &program);

/// n elements of the whole from `global` on, which are those of the piece from `local` on.
struct Run {
  int64_t global, local, count;
};
/// The runs of a piece without its padding, in the order of the whole, which is also the piece's.
std::vector<Run> runsOf(const Rank &rank, const TensorPiece &piece);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_PIECES_H
