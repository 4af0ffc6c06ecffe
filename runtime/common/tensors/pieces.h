// A rank's shards of a program's tensors, and which rank writes which into a checkpoint.

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

/// The elements of a tensor that the rank at these coordinates has, without padding; none where all
/// is padding.
Slices slicesOf(const Program &program, const int *coordinates, const Shape &global,
                const Splits &splits);

/// Is the rank at these coordinates the first of those that have the same shard of a tensor, which
/// is split so and lives on these stages?
bool isFirstOwner(const Program &program, const int *coordinates, const Splits &splits,
                  const StageSet &stages);

/// Does rank 0 lack a part of anything that a checkpoint holds?
bool isSharded(const Program &program);

/// `count` elements of the full tensor from `global` on, which the shard has from `local` on.
struct Run {
  int64_t global, local, count;
};
/// The runs of this rank's shard without its padding, in the order of the full tensor. The shard has
/// them in another order where it is split within blocks of unequal sizes.
std::vector<Run> runsOf(const Rank &rank, const Shape &shape, const Splits &splits);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_PIECES_H
