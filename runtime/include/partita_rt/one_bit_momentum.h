// The running mean whose terms ranks sum with a bit per element (one_bit.h), for kernels and the interpreter: of scalars or of vectors. `times(a, b)` is a
// product that is rounded by itself, so that no kernel contracts it and all have the same bits.

#ifndef PARTITA_RT_ONE_BIT_MOMENTUM_H
#define PARTITA_RT_ONE_BIT_MOMENTUM_H

#include "host_device.h"

namespace partita_rt {

/// Returns the mean after a step that keeps 1 - `change` of it: mean + change (scale gradient - mean).
template <typename T, typename Times>
PARTITA_RT_HOST_DEVICE inline T nextMean(T mean, T gradient, T change, T scale, Times times) {
  return mean + times(change, times(scale, gradient) - mean);
}

/// Returns what a rank adds to the next mean, of which each of `ranks` ranks has the same share now.
template <typename T, typename Times>
PARTITA_RT_HOST_DEVICE inline T termOfMean(T mean, T ranks, T gradient, T change, T scale,
                                           Times times) {
  return nextMean(mean / ranks, gradient, change, scale, times);
}

} // namespace partita_rt

#endif // PARTITA_RT_ONE_BIT_MOMENTUM_H
