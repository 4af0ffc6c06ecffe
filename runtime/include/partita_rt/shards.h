// The sizes of shards, for the runtime and the compiler.

#ifndef PARTITA_RT_SHARDS_H
#define PARTITA_RT_SHARDS_H

#include <cstdint>

namespace partita_rt {

/// Returns the size of each of `parts` shards of a dimension of `size`. One that does not divide is rounded up, so the
/// last shard ends in padding; it may have nothing else, which callers refuse. Shards from 4,096 on are rounded up to a
/// multiple of 64 unless that leaves the last one empty: GPT-2's 50,257 tokens are 25,152 and 25,105 on two ranks,
/// because rows of 25,129 elements of 16 bits are not aligned for tensor cores.
constexpr int64_t shardSize(int64_t size, int64_t parts) {
  constexpr int64_t kLarge = 4096, kMultiple = 64;
  int64_t shard = (size + parts - 1) / parts;
  if (shard * parts == size || shard < kLarge)
    return shard;
  int64_t wide = (shard + kMultiple - 1) / kMultiple * kMultiple;
  return wide * (parts - 1) < size ? wide : shard;
}

/// Returns the elements of each of `parts` flat shards, which divide a tensor's elements as one row.
constexpr int64_t flatShardSize(int64_t elements, int64_t parts) {
  return (elements + parts - 1) / parts;
}

} // namespace partita_rt

#endif // PARTITA_RT_SHARDS_H
