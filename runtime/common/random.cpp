// The random numbers that parameters begin as, and are rounded by (init.h).

#include "partita_rt/random.h"
#include "partita_rt/init.h"

namespace partita_rt {

uint64_t randomKey(uint64_t seed, const char *name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char *p = name; *p; ++p)
    hash = (hash ^ static_cast<unsigned char>(*p)) * 0x100000001B3u;
  return mix64(mix64(seed) ^ hash);
}

double roundingKey(const Rank &rank, int64_t parameter, float applied) {
  return keyOfRounding(rank.seed, rank.update, parameter, applied);
}

/// The four 16-bit fields of x, added.
static int64_t fieldSum(uint64_t x) {
  return int64_t((x & 0xFFFF) + ((x >> 16) & 0xFFFF) + ((x >> 32) & 0xFFFF) + (x >> 48));
}

double standardNormal(uint64_t key, uint64_t index) {
  int64_t sum = 0;
  for (uint64_t j = 0; j < 3; ++j)
    sum += fieldSum(mix64(key + 3 * index + j));
  return double(sum - 393210) / 65536.0;
}

} // namespace partita_rt
