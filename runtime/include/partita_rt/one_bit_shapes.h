// The sizes of what sums with one bit per element send (one_bit.h), for the compiler too.

#ifndef PARTITA_RT_ONE_BIT_SHAPES_H
#define PARTITA_RT_ONE_BIT_SHAPES_H

#include "host_device.h"

#include <cstdint>

namespace partita_rt {

/// Elements of a server's chunk of a tensor of n elements.
PARTITA_RT_HOST_DEVICE constexpr int64_t oneBitChunk(int64_t n, int64_t ranks) {
  return (n + ranks - 1) / ranks;
}

/// How many of a tensor's n elements are no padding, on the rank at this place of those that have `full` elements in shards of n. Padding is at a shard's end.
PARTITA_RT_HOST_DEVICE constexpr int64_t oneBitValid(int64_t n, int64_t full, int64_t place) {
  return full >= (place + 1) * n ? n : full <= place * n ? 0 : full - place * n;
}

/// Bytes of a tensor in a block: its scale and its bits.
constexpr int64_t oneBitBytes(int64_t n, int64_t ranks) {
  return 4 + (oneBitChunk(n, ranks) + 7) / 8;
}

/// Bytes of scratch memory for blocks of this many bytes: those of all ranks, sent and received, and a rank's own sums.
constexpr int64_t oneBitScratch(int64_t blockBytes, int64_t ranks) {
  return (2 * ranks + 1) * blockBytes;
}

/// The order in which the squares of a scale are summed: blocks of so many elements; block i into lane i % kSignScaleLanes; of the lanes,
/// the upper half into the lower one until one is left.
constexpr int64_t kSignScaleBlock = 4096, kSignScaleLanes = 256;

} // namespace partita_rt

#endif // PARTITA_RT_ONE_BIT_SHAPES_H
