// Which tensors several ranks hold, and which ranks differ.
//
// Two ranks hold replicas if the tables give them the same shard of a tensor, by the definition that
// decides who writes it into a checkpoint (firstOwner). The tables repeat the compiler's types: an
// axis that does not split a parameter or state leaves it invariant.

#ifndef PARTITA_RT_COMMON_REPLICAS_REPLICA_SETS_H
#define PARTITA_RT_COMMON_REPLICAS_REPLICA_SETS_H

#include "common/tensors/tensor_shards.h"

#include <cstdint>
#include <string>
#include <vector>

namespace partita_rt {

/// Tensors that the same ranks have replicas of.
struct ReplicaSet {
  std::vector<int> first;      ///< by rank: the first one with the same shards; -1: it has none
  std::vector<size_t> tensors; ///< numbers
};

/// Returns the sets of these tensors (persistentShards), without tensors that no two ranks have the
/// same shard of. The same on every rank.
std::vector<ReplicaSet> replicaSets(const Program &program, const std::vector<TensorShard> &shards);

/// Ranks that should hold the same values of a tensor, and do not.
struct ReplicaDifference {
  size_t tensor;
  std::vector<int> odd;   ///< ranks that differ from most; all of them if no value has a majority
  std::vector<int> equal; ///< the majority
};

/// Returns the differences between all replicas, or those along one mesh axis if they are of fewer
/// tensors, in the tensors' order: where each rank along tp computes a gradient for itself, an error
/// on one makes all its norms differ from the others', but only one tensor along dp. `hashes` has
/// each rank's, of `tensors` tensors.
std::vector<ReplicaDifference> findDifferences(const Program &program,
                                               const std::vector<ReplicaSet> &sets,
                                               const std::vector<uint64_t> &hashes, size_t tensors);

/// "rank 2", "ranks 0, 1 and 3".
std::string ranksText(const std::vector<int> &ranks);

/// "the replicas of wte differ: rank 2 has other values than ranks 0, 1 and 3". `names` are those of
/// the tensors.
std::string differenceText(const std::vector<ReplicaDifference> &differences,
                           const std::vector<std::string> &names);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_REPLICAS_REPLICA_SETS_H
