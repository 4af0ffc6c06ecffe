// The work of a block of attention's backward pass by heads (attention_wgmma_heads_backward.cu): which tile
// of queries passes which tile of keys, in which order; where they lie in shared memory; their copies.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_HEADS_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_HEADS_CUH

#include "cuda/attention/attention_mma_backward.cuh"
#include "cuda/attention/attention_wgmma.cuh"

namespace partita_rt::cuda {

#if defined(PARTITA_RT_WGMMA)

/// A block for heads of kDim elements. Each group has half of a tile of dQ: 64 of 128 queries, or 64 of
/// 128 elements.
template <int kDim_> struct HeadPlan {
  static constexpr int kDim = kDim_, kKeys = 128, kQueries = kDim == 64 ? 128 : 64;
  static constexpr int kThreads = 2 * kGroupThreads;
  static constexpr int kKeyTile = kKeys * kDim, kQueryTile = kQueries * kDim; // elements
  /// K and V, Q and dO with two buffers each, O with one, and dS.
  static constexpr int kBytes =
      (4 * kKeyTile + 5 * kQueryTile + kKeys * kQueries) * 2 + kBlockBytes;
  static_assert(kQueries == attentionHeadQueries(kDim));
};

/// What there is to do, in numbers of 32 bits: divisions of others take a hundred instructions.
struct Extents {
  int batch, heads, keyHeads, groups, keys, queries, pitch;
  explicit Extents(const AttentionShape &shape)
      : batch(int(shape.batch)), heads(int(shape.heads)), keyHeads(int(shape.heads / shape.groups)),
        groups(int(shape.groups)), keys(int(shape.keySequence)), queries(int(shape.sequence)),
        pitch(int(queryPitch(shape))) {}
};

/// A block's place in its work: a tile of queries that passes a tile of keys. Every tile of keys has at
/// least one place, also if no query sees it.
template <typename Plan, bool kDocuments> struct Place {
  int batch, keyHead;
  int key;        ///< the tile's first
  int head;       ///< of queries, in its group
  int query;      ///< the tile's first
  int first, end; ///< the queries that pass the tile of keys

  __device__ Place(const Extents &all, const AttentionShape &shape)
      : batch(int(blockIdx.x) / all.keyHeads), keyHead(int(blockIdx.x) % all.keyHeads), key(0) {
    begin(all, shape);
  }
  __device__ bool isInside(const Extents &all) const { return batch < all.batch; }
  __device__ bool hasQueries() const { return first < end; }
  __device__ bool startsKeys() const { return head == 0 && query == first; }
  __device__ bool endsKeys(const Extents &all) const {
    return query + Plan::kQueries >= end && (!hasQueries() || head + 1 == all.groups);
  }
  __device__ bool endsHead(const Extents &all) const {
    return endsKeys(all) && key + Plan::kKeys >= all.keys;
  }
  __device__ int queryHead(const Extents &all) const { return keyHead * all.groups + head; }
  __device__ Place nextKeys(const Extents &all, const AttentionShape &shape) const {
    Place next = *this;
    next.key += Plan::kKeys;
    if (next.key >= all.keys) {
      next.key = 0;
      next.keyHead += int(gridDim.x);
      while (next.keyHead >= all.keyHeads) {
        next.keyHead -= all.keyHeads;
        ++next.batch;
      }
    }
    next.begin(all, shape);
    return next;
  }
  __device__ Place next(const Extents &all, const AttentionShape &shape) const {
    if (endsKeys(all))
      return nextKeys(all, shape);
    Place next = *this;
    next.query += Plan::kQueries;
    if (next.query >= end) {
      next.query = first;
      ++next.head;
    }
    return next;
  }

private:
  __device__ void begin(const Extents &all, const AttentionShape &shape) {
    head = query = first = end = 0;
    if (!isInside(all))
      return;
    Sight<int, kDocuments> sight(shape, batch);
    QueryTiles tiles(sight, 1, key, Plan::kKeys, Plan::kQueries);
    query = first = tiles.first;
    end = tiles.end;
  }
};

/// Shared memory.
template <typename T, typename Plan> struct HeadTiles {
  T *keys, *values, *queries, *douts, *outs, *ds;
  __device__ explicit HeadTiles(T *at)
      : keys(at), values(keys + 2 * Plan::kKeyTile), queries(values + 2 * Plan::kKeyTile),
        douts(queries + 2 * Plan::kQueryTile), outs(douts + 2 * Plan::kQueryTile),
        ds(outs + Plan::kQueryTile) {}
};

/// Is the tile of keys the first that sees the tile of queries, or the last?
template <typename Plan, typename Sight>
__device__ inline bool isFirstVisit(const Sight &sight, int query, int key) {
  return sight.first(query) >= key;
}
template <typename Plan, typename Sight>
__device__ inline bool isLastVisit(const Sight &sight, int query, int key) {
  return sight.end(min(query + Plan::kQueries, sight.queries) - 1) <= key + Plan::kKeys;
}

/// Copies of a block's places.
template <typename T, typename Plan, bool kDocuments> class PlaceCopies {
  static constexpr int D = Plan::kDim, kKeys = Plan::kKeys, kQueries = Plan::kQueries;
  const PreparedBackward<T> &call;
  const BackwardMaps &maps;
  const Extents &all;
  HeadTiles<T, Plan> tiles;
  Arrivals queryArrivals, keyArrivals;

public:
  __device__ PlaceCopies(const PreparedBackward<T> &call, const BackwardMaps &maps,
                         const Extents &all, const HeadTiles<T, Plan> &tiles, uint64_t *barriers)
      : call(call), maps(maps), all(all), tiles(tiles), queryArrivals(barriers),
        keyArrivals(barriers + Arrivals::kBuffers) {}

  /// Starts copying the queries of a block's step, and what is known of them.
  __device__ void startQueries(const Place<Plan, kDocuments> &place, int step, float *numbers) {
    const AttentionShape &shape = call.shape;
    int b = place.batch, h = place.queryHead(all);
    bool first = isFirstVisit<Plan>(Sight<int, kDocuments>(shape, b), place.query, place.key);
    if (threadIdx.x == 0) {
      uint64_t *barrier = queryArrivals.of(step);
      int at = (step & 1) * Plan::kQueryTile;
      announceBytes(barrier, (first ? 3 : 2) * Plan::kQueryTile * sizeof(T));
      copyTile<kQueries, D>(tiles.queries + at, maps.q, place.query, h, b, barrier);
      copyTile<kQueries, D>(tiles.douts + at, maps.dout, place.query, h, b, barrier);
      if (first)
        copyTile<kQueries, D>(tiles.outs, maps.out, place.query, h, b, barrier);
    }
    if (int(threadIdx.x) < 2 * kQueries) {
      int row = place.query + int(threadIdx.x) % kQueries;
      const float *from = int(threadIdx.x) >= kQueries ? call.delta
                          : first                      ? call.logSumExp
                                                       : call.logSumExp2;
      copyWordAsync(numbers + int(threadIdx.x), from + ((b * all.heads + h) * all.pitch + row),
                    row < all.queries);
    }
    commitCopies();
  }
  /// Starts copying keys and values, a block's tile number i of them.
  __device__ void startKeys(const Place<Plan, kDocuments> &place, int i) {
    if (threadIdx.x != 0)
      return;
    uint64_t *barrier = keyArrivals.of(i);
    int b = place.batch, kv = place.keyHead;
    int at = (i & 1) * Plan::kKeyTile;
    announceBytes(barrier, 2 * Plan::kKeyTile * sizeof(T));
    copyTile<kKeys, D>(tiles.keys + at, maps.k, place.key, kv, b, barrier);
    copyTile<kKeys, D>(tiles.values + at, maps.v, place.key, kv, b, barrier);
  }
  /// Waits for what this thread must wait for.
  __device__ void waitForQueries(int step) {
    waitForCopies<0>();
    queryArrivals.wait(step);
  }
  __device__ void waitForKeys(int i) { keyArrivals.wait(i); }
};

#endif

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_HEADS_CUH
