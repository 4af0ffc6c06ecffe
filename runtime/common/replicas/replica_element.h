// Which runs of a rank's memory are a tensor's, and where replicas of it differ.

#ifndef PARTITA_RT_COMMON_REPLICAS_REPLICA_ELEMENT_H
#define PARTITA_RT_COMMON_REPLICAS_REPLICA_ELEMENT_H

#include "common/replicas/replica_sets.h"
#include "common/target.h"

namespace partita_rt {

/// Adds what is hashed of a shard: its elements without padding, whose values are undefined. Nothing
/// if the rank does not hold it.
void addHashedRuns(const Rank &rank, const TensorShard &shard, size_t sum,
                   std::vector<HashedRun> &runs);

/// Finds the first element in which the replicas of the difference are not equal, by gathers of
/// hashes of smaller and smaller parts. All ranks call it. Returns ", first in element 5: 0x3f800000
/// on rank 2, 0x3f000000 on rank 0".
std::string differingElementText(const Rank &rank, const TensorShard &shard,
                                 const ReplicaDifference &difference);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_REPLICAS_REPLICA_ELEMENT_H
