// What the forward and the backward pass of attention share: which keys a query sees, and tiles.

#ifndef PARTITA_RT_CPU_ATTENTION_H
#define PARTITA_RT_CPU_ATTENTION_H

#include "partita_rt/kernels.h"

#include <algorithm>

namespace partita_rt {

/// Queries of a tile and keys of a tile; a tile of scores is 64 KiB and lives on the stack.
constexpr int64_t kQueryTile = 64;
constexpr int64_t kKeyTile = 256;

/// Query i sees keys 0 .. visibleKeys(i) - 1.
inline int64_t visibleKeys(const AttentionShape &shape, int64_t query) {
  if (!shape.causal)
    return shape.keySequence;
  return std::clamp<int64_t>(query + 1 + shape.keySequence - shape.sequence, 0, shape.keySequence);
}

/// One head of one sequence: its first element.
template <typename T> T *headOf(const HeadsOf<T> &tensor, int64_t batch, int64_t head) {
  return tensor.data + batch * tensor.batchStride + head * tensor.headStride;
}

} // namespace partita_rt

#endif // PARTITA_RT_CPU_ATTENTION_H
