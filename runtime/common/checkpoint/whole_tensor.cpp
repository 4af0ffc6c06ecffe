// Gathers the shards of a tensor (whole_tensor.h).

#include "common/checkpoint/whole_tensor.h"

#include "common/mesh/mesh.h"
#include "common/tensors/layout.h"
#include "partita_rt/comm.h"

#include <cstring>

namespace partita_rt {

const void *WholeTensor::gather(Rank &rank, const TensorPiece &piece) {
  if (!piece.data)
    return gather(rank, piece, nullptr);
  view.emplace(rank, piece.data, piece.local.elements() * sizeOf(piece.dtype));
  return gather(rank, piece, view->data());
}

const void *WholeTensor::gather(Rank &rank, const TensorPiece &piece, const void *own) {
  int64_t width = sizeOf(piece.dtype), bytes = piece.local.elements() * width;
  if (piece.splits.count == 0 && piece.stages.contains(0)) // rank 0 belongs to stage 0
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
              piece.name);
  };
  if (bytes % 4 == 0)
    gatherAs(float());
  else
    bytes % 2 == 0 ? gatherAs(Half()) : gatherAs(bool());
  if (rank.rank != 0)
    return nullptr;
  joined.resize(size_t(piece.global.elements() * width));
  for (int r = 0; r < rank.ranks; ++r) {
    Rank other;
    placeOnMesh(other, *rank.program, r);
    if (!piece.stages.contains(other.stageNumber))
      continue;
    forRuns(*rank.program, other.coordinates, piece.global, piece.splits,
            [&](int64_t global, int64_t local, int64_t n) {
              std::memcpy(joined.data() + global * width, all.data() + r * bytes + local * width,
                          size_t(n * width));
            });
  }
  return joined.data();
}

} // namespace partita_rt
