// How blocks of attention's joint backward passes (attention_*_joint_backward.cu) share out their work: which tile of
// queries passes which tile of keys, in which order and in which block. A Plan is a kernel's: kKeys and kQueries of a
// tile, kDim elements of a head, kThreads of a block.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_JOINT_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_JOINT_CUH

#include "cuda/attention/attention_mma_backward.cuh"
#include "cuda/attention/turns.cuh"

namespace partita_rt::cuda {

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
/// the tile of keys before it never waits. With a causal mask, the last items are the shortest. kThread: the thread
/// that takes the block's turns.
template <bool kTurns, int kThread> struct Turns {
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
  __device__ static bool isOwn() { return kTurns && int(threadIdx.x) == kThread; }
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
  template <bool kTurns, int kThread>
  __device__ Place(const Extents &all, const AttentionShape &shape,
                   const Turns<kTurns, kThread> &turns, int item)
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

/// Is the tile of keys the first that the tile of queries sees, or the last?
template <typename Plan, typename Sight>
__device__ inline bool isFirstVisit(const Sight &sight, int query, int key) {
  return sight.first(query) >= key;
}
template <typename Plan, typename Sight>
__device__ inline bool isLastVisit(const Sight &sight, int query, int key) {
  return sight.end(min(query + Plan::kQueries, sight.queries) - 1) <= key + Plan::kKeys;
}

/// Writes zeros to the dq of queries that see none of the head's keys, and to their partial sums.
template <typename Plan, bool kDocuments, typename T>
__device__ void clearUnseen(const PreparedBackward<T> &call, const Place<Plan, kDocuments> &place) {
  int64_t b = place.batch;
  Sight<int, kDocuments> sight(call.shape, b);
  for (int query = 0; query < sight.queries; query += Plan::kQueries) {
    int first = sight.first(query), last = min(query + Plan::kQueries, sight.queries) - 1;
    if (first < sight.keys && sight.end(last) > first / Plan::kKeys * Plan::kKeys)
      continue;
    constexpr int kPacks = Plan::kDim / kPack;
    int rows = last + 1 - query;
    for (int i = int(threadIdx.x); i < rows * kPacks * int(call.shape.groups);
         i += Plan::kThreads) {
      int64_t head = place.keyHead * call.shape.groups + i / (rows * kPacks);
      T *row = headOf(call.dq, b, head).row(query + i / kPacks % rows);
      *reinterpret_cast<uint4 *>(row + i % kPacks * kPack) = uint4{};
    }
    if (!call.sums)
      continue;
    int width = int(call.shape.groups) * Plan::kDim;
    int parts = int(ceilDiv(rows, kAttentionSumRows));
    int64_t part = b * ceilDiv(call.shape.sequence, kAttentionSumRows) + query / kAttentionSumRows;
    for (int i = int(threadIdx.x); i < parts * width; i += Plan::kThreads)
      call.sums.data[(part + i / width) * call.sums.columns + int64_t(place.keyHead) * width +
                     i % width] = 0.0f;
  }
}

static __global__ void clearCounters(uint32_t *counters, int count) {
  int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count)
    counters[i] = 0;
}

/// Prepares turns with `slots` slots of sums. sums: attentionHeadSums floats for each, then attentionTurnCounters.
template <int kThread>
Turns<true, kThread> beginTurns(const Stream &stream, const AttentionWork &work, float *sums,
                                int64_t slots) {
  int64_t heads = attentionKeyHeads(work), counters = attentionTurnCounters(work, slots);
  Turns<true, kThread> turns{reinterpret_cast<uint32_t *>(sums + slots * attentionHeadSums(work)),
                             int(slots), int(slots == heads ? heads : most(1, slots / 2))};
  PARTITA_RT_LAUNCH(clearCounters, gridOf(ceilDiv(counters, 256)), 256, 0, stream, turns.counters,
                    int(counters));
  return turns;
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_JOINT_CUH
