//===- Random.h - counter-based random numbers --------------------------------------*- C++ -*-===//
//
// The numbers of the runtime's `--init seed:N` (partita_rt/init.h states the arithmetic;
// tools/python/partita_init.py is the same in numpy): they depend on (seed, name, index) alone.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_INTERP_RANDOM_H
#define PARTITA_INTERP_RANDOM_H

#include "llvm/ADT/StringRef.h"
#include <cmath>
#include <cstdint>

namespace partita::interp {

/// Returns splitmix64 of the counter.
inline uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// Returns mix(mix(seed) ^ FNV-1a(name)).
inline uint64_t randomKey(uint64_t seed, llvm::StringRef name) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (unsigned char byte : name.bytes())
    hash = (hash ^ byte) * 0x100000001B3ull;
  return mix64(mix64(seed) ^ hash);
}

/// Returns element `index` of the standard normal sequence of `key`: twelve uniforms added.
inline double standardNormal(uint64_t key, uint64_t index) {
  int64_t sum = 0;
  for (uint64_t j = 0; j < 3; ++j)
    for (uint64_t h = mix64(key + 3 * index + j), field = 0; field < 4; ++field, h >>= 16)
      sum += static_cast<int64_t>(h & 0xFFFF);
  return static_cast<double>(sum - 393210) / 65536;
}

/// Returns a number in [0, 1).
inline double uniform(uint64_t key, uint64_t index) {
  return static_cast<double>(mix64(key + index) >> 11) / 9007199254740992.0;
}

/// Returns the key of a step's random numbers.
inline uint64_t stepKey(uint64_t seed, int64_t step) {
  return mix64(mix64(seed) + static_cast<uint64_t>(step));
}

/// Returns true if dropout number `id` drops element `number` (partita_rt/random.h states the
/// arithmetic: Drops).
inline bool isDropped(uint64_t key, int64_t id, int64_t number, double ratio) {
  uint64_t word = mix64(mix64(key + static_cast<uint64_t>(id)) + static_cast<uint64_t>(number / 4));
  uint64_t bits = word >> number % 4 * 16 & 0xFFFF;
  return static_cast<double>(bits) < std::floor(ratio * 65536 + 0.5);
}

} // namespace partita::interp

#endif // PARTITA_INTERP_RANDOM_H
