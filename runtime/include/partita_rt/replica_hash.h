// The hash by which ranks compare what they all have: the sum, modulo 2^64, of a tensor's 32-bit
// words, each times an odd factor that follows from the word's index.
//
//   - Any error within one word is found: it changes the sum by d x f with 0 < |d| < 2^32 and f odd
//     and below 2^32, which is no multiple of 2^64. So is any pair of flipped bits in a tensor of at
//     most 2^31 words, whose factors differ: +-2^a f +-2^b g is below 2^64, and 0 only if a = b and
//     f = g. Other errors are missed about once in 2^64.
//   - A sum of integers has no order, so a vector's lanes and a GPU's threads give the same value.
//     A CRC finds as much, but each of its words waits for the one before.

#ifndef PARTITA_RT_REPLICA_HASH_H
#define PARTITA_RT_REPLICA_HASH_H

#include "partita_rt/host_device.h"

#include <cstdint>

namespace partita_rt {

/// Bytes of a word, of which a run's last one may have fewer.
constexpr int64_t kHashWord = 4;

/// Returns the factor of a word: odd, and different for any 2^31 successive words.
PARTITA_RT_HOST_DEVICE inline uint32_t hashFactor(uint64_t word) {
  return (2 * uint32_t(word) + 1) * 0x9E3779B1u;
}

/// Returns a word of bytes at any address, with zeros beyond the last one.
PARTITA_RT_HOST_DEVICE inline uint32_t hashWord(const unsigned char *data, int64_t bytes,
                                                int64_t word) {
  uint32_t value = 0;
  for (int64_t i = 0; i < kHashWord && word * kHashWord + i < bytes; ++i)
    value |= uint32_t(data[word * kHashWord + i]) << (8 * i);
  return value;
}

/// Returns the number of words of a run.
PARTITA_RT_HOST_DEVICE inline int64_t hashWords(int64_t bytes) {
  return (bytes + kHashWord - 1) / kHashWord;
}

/// Returns the sum over a run whose first word has this index, in host memory.
uint64_t replicaHash(const void *data, int64_t bytes, uint64_t firstWord);

} // namespace partita_rt

#endif // PARTITA_RT_REPLICA_HASH_H
