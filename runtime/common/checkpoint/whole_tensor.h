// A sharded tensor in full, as rank 0 writes it to a file.

#ifndef PARTITA_RT_COMMON_WHOLE_TENSOR_H
#define PARTITA_RT_COMMON_WHOLE_TENSOR_H

#include "common/target.h"
#include "common/tensors/pieces.h"

#include <optional>
#include <vector>

namespace partita_rt {

/// Gathers tensors, one after the other, in memory that it keeps for the next.
class WholeTensor {
public:
  /// The full tensor on rank 0, valid until the next call; null elsewhere. All ranks call it: they
  /// communicate unless rank 0 has all of it.
  const void *gather(Rank &rank, const TensorPiece &piece);
  /// The same for a shard at `own`, in host memory; null where the rank's stage holds none.
  const void *gather(Rank &rank, const TensorPiece &piece, const void *own);

private:
  std::optional<HostView> view;
  std::vector<char> none, joined;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_WHOLE_TENSOR_H
