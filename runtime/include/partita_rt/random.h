// Counter-based random numbers for --init seed:N, dropout and stochastic rounding.

#ifndef PARTITA_RT_RANDOM_H
#define PARTITA_RT_RANDOM_H

#include "host_device.h"

#include <cstdint>

namespace partita_rt {

/// The finalizer of splitmix64 (init.h has its lines).
PARTITA_RT_HOST_DEVICE inline uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// Returns element `index` of the standard normal sequence of `key` (init.h): the sum of twelve
/// uniforms.
PARTITA_RT_HOST_DEVICE inline double standardNormal(uint64_t key, uint64_t index) {
  int64_t sum = 0;
  for (uint64_t j = 0; j < 3; ++j) {
    uint64_t x = mix64(key + 3 * index + j);
    sum += int64_t((x & 0xFFFF) + ((x >> 16) & 0xFFFF) + ((x >> 32) & 0xFFFF) + (x >> 48));
  }
  return double(sum - 393210) / 65536.0;
}

/// Returns the key of a step's random numbers.
PARTITA_RT_HOST_DEVICE inline uint64_t keyOfStep(uint64_t seed, int64_t step) {
  return mix64(mix64(seed) + uint64_t(step));
}

/// Which elements a dropout drops. Element number n has the 16 bits n % 4 of the word mix64(key + n / 4), the
/// lowest first, and is dropped if they are below ratio * 2^16, rounded: one word decides on four
/// neighbours.
class Drops {
public:
  /// key: of the step; id: of the op as imported.
  PARTITA_RT_HOST_DEVICE Drops(double ratio, uint64_t key, int64_t id)
      : key(mix64(key + uint64_t(id))), bound(uint32_t(ratio * 65536.0 + 0.5)) {}
  /// The word of elements 4 * quad to 4 * quad + 3.
  PARTITA_RT_HOST_DEVICE uint64_t word(int64_t quad) const { return mix64(key + uint64_t(quad)); }
  /// Are 16 bits of a word those of a dropped element?
  PARTITA_RT_HOST_DEVICE bool below(uint32_t bits) const { return bits < bound; }
  PARTITA_RT_HOST_DEVICE bool operator()(int64_t number) const {
    return below(uint32_t(word(number >> 2) >> (number & 3) * 16) & 0xFFFF);
  }

private:
  uint64_t key;
  uint32_t bound;
};

/// Returns the key of a parameter's stochastic rounding (init.h: roundingKey); `update` counts from
/// 1.
PARTITA_RT_HOST_DEVICE inline double keyOfRounding(uint64_t seed, int64_t update, int64_t parameter,
                                                   float applied) {
  update -= applied == 0;
  return update == 0 ? -1.0 : double(mix64(keyOfStep(seed, update) + uint64_t(parameter)) >> 11);
}

} // namespace partita_rt

#endif // PARTITA_RT_RANDOM_H
