// The sizes of what sums with one bit per element send (one_bit.h), and in which steps they send it, for the compiler too.

#ifndef PARTITA_RT_ONE_BIT_SHAPES_H
#define PARTITA_RT_ONE_BIT_SHAPES_H

#include "host_device.h"

#include <cstdint>

namespace partita_rt {

/// Elements of a server's chunk of a tensor of n elements.
PARTITA_RT_HOST_DEVICE constexpr int64_t oneBitChunk(int64_t n, int64_t ranks) {
  return (n + ranks - 1) / ranks;
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

/// Does a step of training, numbered from 1, sum exactly? None does behind step `until`. Up to it all do, or with `doubling` k > 0 the
/// first k of each interval: k steps, then the next k of the multiples of 2, of 4, and so on. These are the steps T_v in which 0/1 Adam
/// (Lu et al., arXiv 2202.06009) updates the variance, in DeepSpeed's form.
PARTITA_RT_HOST_DEVICE constexpr bool isExactStep(int64_t step, int64_t until, int64_t doubling) {
  if (step > until || doubling == 0)
    return step <= until;
  int64_t interval = 1, last = doubling; // of the interval's steps
  while (step > last) {
    interval *= 2;
    last = (last / interval + doubling) * interval;
  }
  return step % interval == 0;
}

/// The number of exact steps.
PARTITA_RT_HOST_DEVICE constexpr int64_t exactSteps(int64_t until, int64_t doubling) {
  if (doubling == 0)
    return until;
  int64_t interval = 1, last = 0, count = 0;
  while (until / interval - last / interval > doubling) {
    count += doubling;
    last = (last / interval + doubling) * interval;
    interval *= 2;
  }
  return count + until / interval - last / interval;
}

} // namespace partita_rt

#endif // PARTITA_RT_ONE_BIT_SHAPES_H
