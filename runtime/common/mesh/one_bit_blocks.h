// What a sum with one bit per element sends (partita_rt/one_bit.h), as the kernels of all targets write and read it.

#ifndef PARTITA_RT_COMMON_MESH_ONE_BIT_BLOCKS_H
#define PARTITA_RT_COMMON_MESH_ONE_BIT_BLOCKS_H

#include "partita_rt/one_bit.h"

#include <algorithm>
#include <cstring>

namespace partita_rt {

/// Blocks of one scale per tensor and their bits, one for each rank. Nothing in them is aligned.
struct OneBitBlocks {
  OneBitTensors tensors;
  int ranks;
  int64_t bytes; ///< of one
  OneBitBlocks(OneBitTensors tensors, int ranks) : tensors(tensors), ranks(ranks), bytes(0) {
    for (const OneBitTensor &each : tensors)
      bytes += oneBitBytes(each.count, ranks);
  }
  /// The first element of a rank's chunk, and how many it has before the tensor's padding.
  int64_t first(const OneBitTensor &tensor, int rank) const {
    return std::min(tensor.valid, rank * oneBitChunk(tensor.count, ranks));
  }
  int64_t size(const OneBitTensor &tensor, int rank) const {
    return std::min(tensor.valid, (rank + 1) * oneBitChunk(tensor.count, ranks)) -
           first(tensor, rank);
  }
  static float scaleAt(const uint8_t *block, size_t tensor) {
    float scale;
    std::memcpy(&scale, block + 4 * tensor, 4);
    return scale;
  }
  static void setScale(uint8_t *block, size_t tensor, float scale) {
    std::memcpy(block + 4 * tensor, &scale, 4);
  }
  /// Calls visit(tensor, its number, the offset of its bits in a block).
  template <typename Visit> void forTensors(Visit visit) const {
    int64_t offset = 4 * int64_t(tensors.size());
    size_t number = 0;
    for (const OneBitTensor &each : tensors) {
      visit(each, number++, offset);
      offset += oneBitBytes(each.count, ranks) - 4;
    }
  }
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_ONE_BIT_BLOCKS_H
