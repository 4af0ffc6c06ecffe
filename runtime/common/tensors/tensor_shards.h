// A rank's shards of a program's tensors, and which rank writes which into a checkpoint.

#ifndef PARTITA_RT_COMMON_TENSORS_TENSOR_SHARDS_H
#define PARTITA_RT_COMMON_TENSORS_TENSOR_SHARDS_H

#include "partita_rt/program.h"
#include "partita_rt/slices.h"

namespace partita_rt {

/// A tensor that this rank, or a rank of another stage, holds.
struct TensorShard {
  const char *name;
  DType dtype;
  Shape global, local;
  Splits splits;
  void *data; ///< null if the rank's stage does not hold it
  StageSet stages;
  Home home = Home::Device;
  int64_t rows = 0; ///< OptimizerState::rows
};

/// Returns a state's full shape, of a parameter of this one.
Shape fullShape(const OptimizerState &state, const Shape &parameter);

/// Returns all parameters of the program, in the same order on every rank.
std::vector<TensorShard> parameterShards(const Rank &rank);
/// Returns all parameters, optimizer states and scalar states, likewise.
std::vector<TensorShard> persistentShards(const Rank &rank);
/// Returns those of persistentShards that the rank's stage holds.
std::vector<TensorShard> heldShards(const Rank &rank);

std::vector<int64_t> sizesOf(const Shape &shape);

/// Returns the elements of a tensor that the rank at these coordinates has, without padding; none
/// if all is padding.
Slices slicesOf(const Program &program, const int *coordinates, const Shape &global,
                const Splits &splits);

/// Returns the first of the ranks that have the same shard as the rank at these coordinates, of a
/// tensor that is split so and lives on these stages. Ranks with the same first one have replicas.
int firstOwner(const Program &program, const int *coordinates, const Splits &splits,
               const StageSet &stages);
/// Is that the rank itself?
bool isFirstOwner(const Program &program, const int *coordinates, const Splits &splits,
                  const StageSet &stages);

/// Does rank 0 lack a part of anything that a checkpoint holds?
bool isSharded(const Program &program);

/// `count` elements that start at `global` in the full tensor and at `local` in the shard.
struct Run {
  int64_t global, local, count;
};
/// Returns the runs of this rank's shard without its padding, in the order of the full tensor. In
/// the shard their order differs if it is split within blocks of unequal sizes.
std::vector<Run> runsOf(const Rank &rank, const Shape &shape, const Splits &splits);
/// The same of every row of a tensor of so many, whatever row is the rank's own: a run of each is at the same place of the shard.
std::vector<Run> runsOfRows(const Rank &rank, const TensorShard &shard, int64_t rows);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_TENSORS_TENSOR_SHARDS_H
