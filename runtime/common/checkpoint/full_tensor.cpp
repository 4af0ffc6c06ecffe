// Gathers the shards of a tensor (full_tensor.h).

#include "common/checkpoint/full_tensor.h"

#include "common/mesh/mesh.h"
#include "common/tensors/layout.h"
#include "partita_rt/comm.h"

#include <cstring>

namespace partita_rt {

const void *FullTensor::gather(Rank &rank, const TensorShard &shard) {
  if (!shard.data)
    return gather(rank, shard, nullptr);
  view.emplace(rank, shard.data, shard.local.elements() * sizeOf(shard.dtype));
  return gather(rank, shard, view->data());
}

const void *FullTensor::gather(Rank &rank, const TensorShard &shard, const void *own) {
  int64_t width = sizeOf(shard.dtype), bytes = shard.local.elements() * width;
  if (shard.splits.count == 0 && shard.stages.contains(0)) // rank 0 belongs to stage 0
    return rank.rank == 0 ? own : nullptr;
  if (!own) {
    none.assign(size_t(bytes), 0);
    own = none.data();
  }
  std::vector<char> all(size_t(bytes * rank.ranks));
  auto gatherAs = [&](auto type) { // any type of this size will do: elements are only moved
    using T = decltype(type);
    allGather(*rank.world,
              {{static_cast<const T *>(own), reinterpret_cast<T *>(all.data()),
                bytes / int64_t(sizeof(T))}},
              shard.name);
  };
  if (bytes % 4 == 0)
    gatherAs(float());
  else
    bytes % 2 == 0 ? gatherAs(Half()) : gatherAs(bool());
  if (rank.rank != 0)
    return nullptr;
  joined.resize(size_t(shard.global.elements() * width));
  for (int r = 0; r < rank.ranks; ++r) {
    Rank other;
    setCoordinates(other, *rank.program, r);
    if (!shard.stages.contains(other.stageNumber))
      continue;
    forRuns(*rank.program, other.coordinates, shard.global, shard.splits,
            [&](int64_t global, int64_t local, int64_t n) {
              std::memcpy(joined.data() + global * width, all.data() + r * bytes + local * width,
                          size_t(n * width));
            });
  }
  return joined.data();
}

} // namespace partita_rt
