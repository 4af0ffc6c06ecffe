// The hash of replicas in host memory (partita_rt/replica_hash.h).

#include "partita_rt/replica_hash.h"

namespace partita_rt {

uint64_t replicaHash(const void *data, int64_t bytes, uint64_t firstWord) {
  // Words of tensors of any type, at any address; `auto` would lose these attributes.
  typedef uint32_t Word __attribute__((__may_alias__, __aligned__(1)));
  const Word *words = static_cast<const Word *>(data);
  int64_t complete = bytes / kHashWord;
  uint64_t sum = 0;
  uint32_t first = uint32_t(firstWord);
  for (int64_t i = 0; i < complete; ++i)
    sum += uint64_t(words[i]) * hashFactor(first + uint32_t(i));
  if (bytes % kHashWord)
    sum += uint64_t(hashWord(static_cast<const unsigned char *>(data), bytes, complete)) *
           hashFactor(firstWord + uint64_t(complete));
  return sum;
}

} // namespace partita_rt
