// Gathers a sharded tensor in full, for rank 0 to write to a file.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_FULL_TENSOR_H
#define PARTITA_RT_COMMON_CHECKPOINT_FULL_TENSOR_H

#include "common/target.h"
#include "common/tensors/tensor_shards.h"

#include <optional>
#include <vector>

namespace partita_rt {

/// A buffer in which tensors are gathered one after the other.
class FullTensor {
public:
  /// Returns the full tensor on rank 0, valid until the next call; null elsewhere. All ranks call
  /// it: they communicate unless rank 0 has all of it.
  const void *gather(Rank &rank, const TensorShard &shard);
  /// Does the same for a shard at `own`, in host memory; null if the rank's stage holds none.
  const void *gather(Rank &rank, const TensorShard &shard, const void *own);

private:
  std::optional<HostView> view;
  std::vector<char> none, joined;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_FULL_TENSOR_H
