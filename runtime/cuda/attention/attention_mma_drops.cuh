// Dropout of tiles of probabilities that are laid out as C of a matmul.
//
// One word of random numbers decides on four keys of a query (random.h: Drops). Rows of probabilities
// begin at multiples of four, and so do tiles: the lanes that share four keys draw different words and
// exchange parts of them, so that a lane draws one word for four elements.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_DROPS_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_DROPS_CUH

#include "cuda/attention/attention_mma.cuh"

namespace partita_rt::cuda {

/// Dropout of one rank, as a kernel keeps it. Empty in kernels for calls without it. kSometimes: in kernels for calls
/// with it and without.
template <bool kDrops, bool kSometimes = false> struct TileDrops {
  static constexpr float scale = 1.0f;
  __device__ explicit TileDrops(const AttentionShape &) {}
  __device__ void atHead(int64_t, int64_t) {}
};
template <bool kSometimes> struct TileDrops<true, kSometimes> {
  AttentionDrops all;
  bool has;
  float scale;
  int64_t quad; ///< number of the head's first word
  int rowQuads; ///< words per query
  __device__ explicit TileDrops(const AttentionShape &shape)
      : all(shape), has(shape.dropout.ratio > 0.0), scale(all.scale), quad(0),
        rowQuads(int(all.keys / 4)) {}
  __device__ void atHead(int64_t batch, int64_t head) { quad = all.row(batch, head, 0) / 4; }
  /// Else nothing is drawn.
  __device__ bool draws() const { return !kSometimes || has; }
  __device__ uint64_t word(int query, int key) const {
    return all.drops.word(quad + int64_t(query) * rowQuads + key / 4);
  }
};

/// Calls visit(element, whether it is dropped) for a tile whose rows are queries. query: the one of
/// the lane's first row; key: the first of the tile.
template <int kTiles, int kColumns, typename Source, typename Visit>
__device__ inline void forDropsOfQueries(float (&tile)[kTiles][kColumns][4], const Source &drops,
                                         int query, int key, Visit visit) {
  // Two lanes share four keys and two queries: each draws for one of these.
  int lane = int(threadIdx.x) % kWarp, odd = lane % 2;
  int drawn = query + 8 * odd, at = key + lane % 4 / 2 * 4;
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      uint64_t word = drops.word(drawn + 16 * i, at + 8 * j);
      uint32_t low = uint32_t(word), high = uint32_t(word >> 32);
      uint32_t other = __shfl_xor_sync(kAllLanes, odd ? low : high, 1);
      uint32_t bits[2] = {odd ? other : low, odd ? high : other};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        visit(tile[i][j][2 * half], drops.all.drops.below(bits[half] & 0xFFFF));
        visit(tile[i][j][2 * half + 1], drops.all.drops.below(bits[half] >> 16));
      }
    }
}

/// Likewise for a tile whose rows are keys. query: the first of the tile; key: the first of the
/// warp.
template <int kTiles, int kColumns, typename Source, typename Visit>
__device__ inline void forDropsOfKeys(float (&tile)[kTiles][kColumns][4], const Source &drops,
                                      int query, int key, Visit visit) {
  // Four lanes, `number` 0 to 3, share two times four keys and two queries: each draws for one of
  // these pairs, for keys 8 * (number / 2) and query number % 2. They transpose the four words.
  int lane = int(threadIdx.x) % kWarp, number = lane / 4 % 4;
  bool odd = number % 2 != 0, second = number / 2 != 0;
  int drawn = query + lane % 4 * 2 + odd, at = key + lane / 16 * 4 + (second ? 8 : 0);
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      uint64_t word = drops.word(drawn + 8 * j, at + 16 * i);
      uint32_t low = uint32_t(word), high = uint32_t(word >> 32);
      uint32_t own = second ? high : low;
      uint32_t other = __shfl_xor_sync(kAllLanes, second ? low : high, 8);
      // Keys 2 * second, + 1 of the words of query `odd`: those of the first four keys, and of the others.
      uint32_t words[2] = {second ? other : own, second ? own : other};
      uint32_t lows = (words[0] & 0xFFFF) | words[1] << 16;
      uint32_t highs = words[0] >> 16 | (words[1] & 0xFFFF0000);
      uint32_t mine = odd ? highs : lows;
      uint32_t theirs = __shfl_xor_sync(kAllLanes, odd ? lows : highs, 4);
      uint32_t bits[2] = {odd ? theirs : mine, odd ? mine : theirs}; // of the queries
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        visit(tile[i][j][e], drops.all.drops.below(bits[e] & 0xFFFF));
        visit(tile[i][j][2 + e], drops.all.drops.below(bits[e] >> 16));
      }
    }
}

/// Drops weights of queries, or multiplies the others by `factor`.
template <bool kDrops, bool kSometimes, int kTiles, int kColumns>
__device__ inline void dropOfQueries(float (&tile)[kTiles][kColumns][4],
                                     const TileDrops<kDrops, kSometimes> &drops, int query, int key,
                                     float factor = 1.0f) {
  if constexpr (kDrops)
    if (drops.draws())
      forDropsOfQueries(tile, drops, query, key, [factor](float &element, bool dropped) {
        element = dropped ? 0.0f : element * factor;
      });
}

/// Makes the weights of keys that are dropped negative.
template <bool kDrops, bool kSometimes, int kTiles, int kColumns>
__device__ inline void markDropped(float (&weights)[kTiles][kColumns][4],
                                   const TileDrops<kDrops, kSometimes> &drops, int query, int key) {
  if constexpr (kDrops)
    if (drops.draws())
      forDropsOfKeys(weights, drops, query, key,
                     [](float &weight, bool dropped) { weight = dropped ? -weight : weight; });
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_DROPS_CUH
