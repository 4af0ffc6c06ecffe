// How blocks of attention's joint backward pass (attention_wgmma_joint_backward.cu) share out its work: which tile
// of queries passes which tile of keys, in which order and in which block; where they lie in shared memory; their
// copies.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_JOINT_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_JOINT_CUH

#include "cuda/attention/attention_mma_backward.cuh"
#include "cuda/attention/attention_wgmma.cuh"
#include "cuda/attention/turns.cuh"

namespace partita_rt::cuda {

#if defined(PARTITA_RT_WGMMA)

/// A block for heads of kDim elements. Each group has half of a tile of dQ: 64 of 128 queries, or 64 of
/// 128 elements.
template <int kDim_> struct JointPlan {
  static constexpr int kDim = kDim_, kKeys = kAttentionTileKeys, kQueries = kDim == 64 ? 128 : 64;
  static constexpr int kThreads = 2 * kGroupThreads;
  static constexpr int kKeyTile = kKeys * kDim, kQueryTile = kQueries * kDim; // elements
  /// K and V, Q and dO with two buffers each, O with one, and dS.
  static constexpr int kBytes =
      (4 * kKeyTile + 5 * kQueryTile + kKeys * kQueries) * 2 + kBlockBytes;
  static_assert(kQueries == attentionTileQueries(kDim));
};

/// What there is to do, in numbers of 32 bits: divisions of others take a hundred instructions.
struct Extents {
  int batch, heads, keyHeads, groups, keys, queries, pitch, keyTiles, queryTiles;
  template <typename Plan>
  Extents(const AttentionShape &shape, const Plan &)
      : batch(int(shape.batch)), heads(int(shape.heads)), keyHeads(int(shape.heads / shape.groups)),
        groups(int(shape.groups)), keys(int(shape.keySequence)), queries(int(shape.sequence)),
        pitch(int(queryPitch(shape))), keyTiles(int(ceilDiv(keys, Plan::kKeys))),
        queryTiles(int(ceilDiv(queries, Plan::kQueries))) {}
};

/// How blocks share out the work. What a block computes at a time is an item.
///
/// By heads (not kTurns), an item is a head of keys, and a block has every gridDim.x-th. Only it adds to the
/// head's dq, in the block's own slot of sums.
///
/// By turns, an item is a tile of keys of a head. Blocks draw items in one order: `together` heads at a time, and
/// of these the first tiles, then the second ones and so on. A tile of queries gets its terms from tiles of keys in
/// ascending order, and an item's tiles of queries come in descending order: an item that is a step behind that of
/// the tile of keys before it never waits. With a causal mask, the last items are the shortest.
template <bool kTurns> struct Turns {
  uint32_t *counters; ///< 0 at first
  int slots;          ///< heads of keys that have sums at once
  int together;

  /// Draws the item after that of a step's place, as tickets[step % 2] for all threads behind a barrier.
  __device__ void draw(int *tickets, int step) const {
    if (isOwn())
      tickets[step & 1] = int(drawTicket(counters));
  }
  /// Tells other blocks of the step before this one, unless this one starts an item, and waits for their terms of this
  /// step's dq: all of the tile of keys before, or, on a first visit, all of the head that had the slot before.
  template <typename Place>
  __device__ void take(const Place &place, bool startsItem, bool firstVisit,
                       const Extents &all) const {
    if (!isOwn())
      return;
    int sums = place.sums(all);
    uint32_t tile = place.keyTileOfAll(all);
    if (!startsItem)
      announceCount(added(sums + 1), tile + 1);
    if (firstVisit)
      waitForSlot(place, all);
    else
      waitForCount(added(sums), tile);
  }
  /// Tells them of the last step of an item.
  template <typename Place> __device__ void end(const Place &place, const Extents &all) const {
    if (!isOwn())
      return;
    if (place.hasQueries())
      announceCount(added(place.sums(all)), place.keyTileOfAll(all) + 1);
    else // nothing to wait for, but it must not count for the head that still has the slot
      waitForSlot(place, all);
    announceOne(finished(place.slot));
  }

private:
  /// Is this the thread that takes the block's turns? Another one starts its copies.
  __device__ static bool isOwn() { return kTurns && int(threadIdx.x) == kGroupThreads; }
  /// Waits for all items of the heads that have had the slot before.
  template <typename Place>
  __device__ void waitForSlot(const Place &place, const Extents &all) const {
    waitForCount(finished(place.slot), uint32_t(place.keyHeadOfAll(all) / slots * all.keyTiles));
  }
  /// The items that are done with, of all heads that have had the slot.
  __device__ uint32_t *finished(int slot) const { return counters + 1 + slot; }
  /// Of tile number `sums` of dq: 1 + the number of the last tile of keys that has added to it.
  __device__ uint32_t *added(int sums) const { return counters + 1 + slots + sums; }
};

/// A block's place in its work: a tile of queries that passes a tile of keys. Every tile of keys has at
/// least one place, also if no query sees it.
template <typename Plan, bool kDocuments> struct Place {
  int batch, keyHead;
  int slot;
  int key;   ///< the tile's first
  int query; ///< the tile's first
  int head;  ///< of queries, in its group
  int rest;  ///< of the tile of keys, the places after this one; -1: no query sees it

  /// The first place of an item, inside if it is one of the launch's.
  template <bool kTurns>
  __device__ Place(const Extents &all, const AttentionShape &shape, const Turns<kTurns> &turns,
                   int item)
      : slot(int(blockIdx.x)), key(0) {
    int number = item;
    if constexpr (kTurns) {
      int firstHead = item / (turns.together * all.keyTiles) * turns.together;
      int heads = max(1, min(turns.together, all.batch * all.keyHeads - firstHead));
      int inHeads = item - firstHead * all.keyTiles, tile = inHeads / heads;
      number = tile < all.keyTiles ? firstHead + inHeads - tile * heads : all.batch * all.keyHeads;
      key = tile * Plan::kKeys;
      slot = number % turns.slots;
    }
    batch = number / all.keyHeads;
    keyHead = number - batch * all.keyHeads;
    begin(all, shape);
  }
  __device__ bool isInside(const Extents &all) const { return batch < all.batch; }
  __device__ bool hasQueries() const { return rest >= 0; }
  __device__ bool endsKeys() const { return rest <= 0; }
  __device__ bool hasLastKeys(const Extents &all) const { return key + Plan::kKeys >= all.keys; }
  template <bool kTurns> __device__ bool endsItem(const Extents &all) const {
    return endsKeys() && (kTurns || hasLastKeys(all));
  }
  __device__ int queryHead(const Extents &all) const { return keyHead * all.groups + head; }
  /// The numbers of the head of keys and of the tile of keys among those of all sequences.
  __device__ int keyHeadOfAll(const Extents &all) const { return batch * all.keyHeads + keyHead; }
  __device__ uint32_t keyTileOfAll(const Extents &all) const {
    return uint32_t(keyHeadOfAll(all) * all.keyTiles + key / Plan::kKeys);
  }
  /// The number of the tile of sums. That of the last place of the same tile of keys is one more.
  __device__ int sums(const Extents &all) const {
    return (slot * all.queryTiles + query / Plan::kQueries) * all.groups + head;
  }
  /// The next place of the same item.
  __device__ Place next(const Extents &all, const AttentionShape &shape) const {
    Place next = *this;
    if (endsKeys()) {
      next.key += Plan::kKeys;
      next.begin(all, shape);
      return next;
    }
    --next.rest;
    if (--next.head < 0) {
      next.head = all.groups - 1;
      next.query -= Plan::kQueries;
    }
    return next;
  }

private:
  __device__ void begin(const Extents &all, const AttentionShape &shape) {
    head = all.groups - 1;
    query = 0;
    rest = -1;
    if (!isInside(all))
      return;
    Sight<int, kDocuments> sight(shape, batch);
    QueryTiles tiles(sight, all.groups, key, Plan::kKeys, Plan::kQueries);
    rest = tiles.tiles - 1;
    if (hasQueries())
      query = (tiles.end - 1) / Plan::kQueries * Plan::kQueries;
  }
};

/// Shared memory.
template <typename T, typename Plan> struct JointTiles {
  T *keys, *values, *queries, *douts, *outs, *ds;
  __device__ explicit JointTiles(T *at)
      : keys(at), values(keys + 2 * Plan::kKeyTile), queries(values + 2 * Plan::kKeyTile),
        douts(queries + 2 * Plan::kQueryTile), outs(douts + 2 * Plan::kQueryTile),
        ds(outs + Plan::kQueryTile) {}
};

/// Is the tile of keys the first that the tile of queries sees, or the last?
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
  JointTiles<T, Plan> tiles;
  bool prepares;
  Arrivals queryArrivals, keyArrivals;

public:
  /// prepares: the first place of a tile of queries also needs the forward pass's results.
  __device__ PlaceCopies(const PreparedBackward<T> &call, const BackwardMaps &maps,
                         const Extents &all, const JointTiles<T, Plan> &tiles, bool prepares,
                         uint64_t *barriers)
      : call(call), maps(maps), all(all), tiles(tiles), prepares(prepares), queryArrivals(barriers),
        keyArrivals(barriers + Arrivals::kBuffers) {}

  /// Starts copying the queries of a block's step, and what is known of them.
  __device__ void startQueries(const Place<Plan, kDocuments> &place, int step, float *numbers) {
    int b = place.batch, h = place.queryHead(all);
    Sight<int, kDocuments> sight(call.shape, b);
    bool outs = prepares && isFirstVisit<Plan>(sight, place.query, place.key);
    if (threadIdx.x == 0) {
      uint64_t *barrier = queryArrivals.of(step);
      int at = (step & 1) * Plan::kQueryTile;
      announceBytes(barrier, (outs ? 3 : 2) * Plan::kQueryTile * sizeof(T));
      copyTile<kQueries, D>(tiles.queries + at, maps.q, place.query, h, b, barrier);
      copyTile<kQueries, D>(tiles.douts + at, maps.dout, place.query, h, b, barrier);
      if (outs)
        copyTile<kQueries, D>(tiles.outs, maps.out, place.query, h, b, barrier);
    }
    if (int(threadIdx.x) < 2 * kQueries) {
      int row = place.query + int(threadIdx.x) % kQueries;
      const float *from = int(threadIdx.x) >= kQueries ? call.delta
                          : outs                       ? call.logSumExp
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

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_JOINT_CUH
