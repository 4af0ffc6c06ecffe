// Counter-based random numbers: what stands behind --init seed:N, dropout and stochastic rounding.

#ifndef PARTITA_RT_RANDOM_H
#define PARTITA_RT_RANDOM_H

#include "partita_rt/host_device.h"

#include <cstdint>

namespace partita_rt {

/// The finalizer of splitmix64 (init.h has its lines).
PARTITA_RT_HOST_DEVICE inline uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

} // namespace partita_rt

#endif // PARTITA_RT_RANDOM_H
