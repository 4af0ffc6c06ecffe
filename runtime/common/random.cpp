// Random numbers for initial values of parameters and for their rounding (init.h).

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

} // namespace partita_rt
