// Attention backward with five matmuls per tile of scores, by warp groups: one launch, for calls with
// enough heads to keep every multiprocessor busy (attentionHeadBlocks in workspaces.h). Formulas and roundings
// as in attention_mma_backward.cu.
//
// The two launches of attention_wgmma_backward.cu compute scores and dP twice, once for dQ and once for
// dK and dV. Here a block owns a head of keys with all its heads of queries: for each tile of keys, the
// tiles of queries that see it pass by, so dK and dV are sums in registers, and the block adds dS K to
// the dQ of each tile of queries in scratch memory. An element of dQ is always added to by the same
// thread, in the order of its program: no atomics between threads, no waiting, one order. A grid has at
// most kHeadBlocks blocks, whose sums stay in the L2 cache. The first tile of keys that a tile of
// queries sees stores its term, and the last one rounds the sum to dQ.
//
// The block's two warp groups have 64 keys each. Tiles of dS, whose rows are keys, pass through shared
// memory, for dS^T K over the keys of both.

#include "cuda/attention/attention_mma_backward.cuh"
#include "cuda/attention/attention_wgmma.cuh"
#include "cuda/attention/recent_sums.cuh"

namespace partita_rt::cuda {

#if defined(PARTITA_RT_WGMMA)

namespace {

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
  int batch, keyHeads, groups, keys;
  explicit Extents(const AttentionShape &shape)
      : batch(int(shape.batch)), keyHeads(int(shape.heads / shape.groups)),
        groups(int(shape.groups)), keys(int(shape.keySequence)) {}
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
  Arrivals<4> arrivals; ///< of two tiles of queries, and of two of keys

public:
  __device__ PlaceCopies(const PreparedBackward<T> &call, const BackwardMaps &maps,
                         const Extents &all, const HeadTiles<T, Plan> &tiles, uint64_t *barriers)
      : call(call), maps(maps), all(all), tiles(tiles), arrivals(barriers) {}

  /// Starts copying the queries, and what is known of them.
  __device__ void startQueries(const Place<Plan, kDocuments> &place, int buffer, float *numbers) {
    const AttentionShape &shape = call.shape;
    int b = place.batch, h = place.queryHead(all);
    bool first = isFirstVisit<Plan>(Sight<int, kDocuments>(shape, b), place.query, place.key);
    if (threadIdx.x == 0) {
      uint64_t *barrier = arrivals.of(buffer);
      int at = buffer * Plan::kQueryTile;
      announceBytes(barrier, (first ? 3 : 2) * Plan::kQueryTile * sizeof(T));
      copyTile<kQueries, D>(tiles.queries + at, maps.q, place.query, h, b, barrier);
      copyTile<kQueries, D>(tiles.douts + at, maps.dout, place.query, h, b, barrier);
      if (first)
        copyTile<kQueries, D>(tiles.outs, maps.out, place.query, h, b, barrier);
    }
    if (int(threadIdx.x) < 2 * kQueries) {
      int row = place.query + int(threadIdx.x) % kQueries;
      int64_t number = call.rowOf(b, h, row);
      const float *from = int(threadIdx.x) >= kQueries ? call.delta + number
                          : first                      ? call.logSumExp + number
                                                       : call.logSumExp2 + number;
      copyWordAsync(numbers + int(threadIdx.x), from, row < shape.sequence);
    }
    commitCopies();
  }
  /// Starts copying keys and values.
  __device__ void startKeys(const Place<Plan, kDocuments> &place, int buffer) {
    if (threadIdx.x != 0)
      return;
    uint64_t *barrier = arrivals.of(2 + buffer);
    int b = place.batch, kv = place.keyHead;
    int at = buffer * Plan::kKeyTile;
    announceBytes(barrier, 2 * Plan::kKeyTile * sizeof(T));
    copyTile<kKeys, D>(tiles.keys + at, maps.k, place.key, kv, b, barrier);
    copyTile<kKeys, D>(tiles.values + at, maps.v, place.key, kv, b, barrier);
  }
  /// Waits for what this thread must wait for.
  __device__ void waitForQueries(int buffer) {
    waitForCopies<0>();
    arrivals.wait(buffer);
  }
  __device__ void waitForKeys(int buffer) { arrivals.wait(2 + buffer); }
};

/// prepareBackward's results for a tile of queries on its first visit: `numbers` has their log-sum-exp,
/// and receives logSumExp2 and delta, as the workspace does for later visits.
template <typename Plan, typename T>
__device__ void prepareTile(const PreparedBackward<T> &call, const T *outs, const T *douts,
                            float *numbers, int64_t number, int rows) {
  constexpr int kThreadsOfRow = Plan::kThreads / Plan::kQueries, kPacks = Plan::kDim / kPack;
  int row = int(threadIdx.x) / kThreadsOfRow, part = int(threadIdx.x) % kThreadsOfRow;
  float delta = 0.0f;
#pragma unroll
  for (int i = 0; i < kPacks / kThreadsOfRow; ++i) {
    int at = offsetOf<Plan::kQueries>(row, part * (kPacks / kThreadsOfRow) + i);
    Pack<T, kPack> packs[2];
    float out[kPack], dout[kPack];
    loadAligned(packs[0], outs + at);
    loadAligned(packs[1], douts + at);
    widen(out, packs[0]);
    widen(dout, packs[1]);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      delta += out[j] * dout[j];
  }
#pragma unroll
  for (int with = 1; with < kThreadsOfRow; with *= 2)
    delta += __shfl_xor_sync(kAllLanes, delta, with);
  if (part != 0)
    return;
  float saved = numbers[row];
  float shift = saved == Largest::kNone ? -Largest::kNone : saved * kLog2E;
  numbers[row] = shift;
  numbers[Plan::kQueries + row] = delta;
  if (row < rows) {
    call.logSumExp2[number + row] = shift;
    call.delta[number + row] = delta;
  }
}

/// A group's half of the dQ of a tile of queries.
template <typename T, typename Plan> struct QuerySums {
  float terms[8][4];

  /// Starts computing dS^T K.
  __device__ void begin(const T *ds, const T *keys, int group) {
    constexpr bool byRows = Plan::kDim == 64;
    constexpr int kPanelBytes = Plan::kKeys * kPanel * 2, kStep = 16 * kPanel * 2;
    uint64_t left = operandAt(sharedAddress(ds) + uint32_t(byRows ? group * kPanelBytes : 0));
    uint64_t right = operandAt(sharedAddress(keys) + uint32_t(byRows ? 0 : group * kPanelBytes));
#pragma unroll
    for (int i = 0; i < Plan::kKeys / 16; ++i)
      multiplyGroup<T, true, true>(terms, behind(left, i * kStep), behind(right, i * kStep), i > 0);
  }
  /// Adds the sum so far, or becomes it.
  __device__ void load(const float *sums) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float4 sum = loadRecent(sums + 4 * j * Plan::kThreads);
      terms[j][0] += sum.x;
      terms[j][1] += sum.y;
      terms[j][2] += sum.z;
      terms[j][3] += sum.w;
    }
  }
  __device__ void store(float *sums) const {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      reinterpret_cast<float4 *>(sums)[j * Plan::kThreads] =
          float4{terms[j][0], terms[j][1], terms[j][2], terms[j][3]};
  }
  __device__ void add(float *sums) const {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      addToRecent(sums + 4 * j * Plan::kThreads, terms[j]);
  }
  /// Writes them, rounded, to rows [query, count) of dq.
  __device__ void round(const HeadRows<T> &dq, int query, int count, int group, float scale) const {
    int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp % 4;
    int row = query + (Plan::kDim == 64 ? group * kGroupRows : 0) + 16 * warp + lane / 4;
    int column = (Plan::kDim == 64 ? 0 : group * 64) + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (row + 8 * half < count) {
        T *to = dq.row(row + 8 * half) + column;
#pragma unroll
        for (int j = 0; j < 8; ++j)
          *reinterpret_cast<uint32_t *>(to + 8 * j) =
              roundPair<T>(terms[j][2 * half] * scale, terms[j][2 * half + 1] * scale);
      }
  }
};

template <int N> __device__ inline void clear(float (&sums)[N][4]) {
#pragma unroll
  for (auto &each : sums)
#pragma unroll
    for (float &sum : each)
      sum = 0.0f;
}

/// Writes zeros to the dq of queries that see none of the head's keys.
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
  }
}

/// Computes all gradients, of the heads of keys blockIdx.x, blockIdx.x + gridDim.x and so on. sums:
/// attentionHeadSums floats.
template <typename T, typename Plan, Extra kExtra>
__global__ void __launch_bounds__(Plan::kThreads, 1)
    gradientsByHeads(PreparedBackward<T> call, float *sums,
                     const __grid_constant__ BackwardMaps maps, Extents all) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ uint64_t barriers[4];
  constexpr int D = Plan::kDim, kKeys = Plan::kKeys, kQueries = Plan::kQueries;
  constexpr bool kDocuments = kHasFirstKeys<kExtra>, kDrops = kExtra == Extra::Dropout;
  __shared__ float numbers[2][2][kQueries]; // logSumExp2 and delta of two tiles of queries
  const AttentionShape &shape = call.shape;
  HeadTiles<T, Plan> tiles(tilesIn<T>(dynamic));
  int lane = int(threadIdx.x) % kWarp, group = groupOfThread();
  int row = int(threadIdx.x) / kWarp * 16; // the warp's first in a tile of keys
  int queryTiles = int(ceilDiv(shape.sequence, kQueries));
  float *ownSums = sums + int64_t(blockIdx.x) * shape.groups * queryTiles * Plan::kQueryTile +
                   4 * int(threadIdx.x);
  TileDrops<kDrops> drops(shape);
  float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};

  Place<Plan, kDocuments> place(all, shape);
  PlaceCopies<T, Plan, kDocuments> copies(call, maps, all, tiles, barriers);
  copies.startKeys(place, 0);
  copies.startQueries(place, 0, numbers[0][0]);
  __syncthreads(); // the barriers are made
  for (int step = 0, keyTile = 0; place.isInside(all); ++step) {
    int buffer = step % 2, query = place.query, key = place.key;
    int64_t b = place.batch, h = place.queryHead(all), kv = place.keyHead;
    Sight<int, kDocuments> sight(shape, b);
    T *keys = tiles.keys + keyTile % 2 * Plan::kKeyTile;
    T *values = tiles.values + keyTile % 2 * Plan::kKeyTile;
    T *queries = tiles.queries + buffer * Plan::kQueryTile;
    T *douts = tiles.douts + buffer * Plan::kQueryTile;
    bool first = isFirstVisit<Plan>(sight, query, key);
    copies.waitForQueries(buffer);
    if (place.startsKeys())
      copies.waitForKeys(keyTile % 2);
    __syncthreads(); // all threads' copies have arrived, and they are done with the last place
    if (first && place.hasQueries()) {
      prepareTile<Plan>(call, tiles.outs, douts, numbers[buffer][0], call.rowOf(b, h, query),
                        sight.queries - query);
      __syncthreads();
    }
    Place<Plan, kDocuments> coming = place.next(all, shape);
    if (coming.isInside(all))
      copies.startQueries(coming, 1 - buffer, numbers[1 - buffer][0]);
    if (place.startsKeys())
      if (Place<Plan, kDocuments> next = place.nextKeys(all, shape); next.isInside(all))
        copies.startKeys(next, (keyTile + 1) % 2);

    if (place.hasQueries()) {
      int last = min(query + kQueries, sight.queries) - 1, own = key + row; // the warp's first key
      uint32_t passing = sharedAddress(queries), passingDouts = sharedAddress(douts);
      float p[1][kQueries / 8][4], ds[1][kQueries / 8][4];
      uint32_t roundedP[kQueries / 16][4], roundedDs[kQueries / 16][4];
      drops.atHead(b, h);
      beginMatmuls();
      matmulByRows<T, kKeys, D>(p[0], sharedAddress(keys + group * kGroupRows * kPanel), passing);
      commitMatmuls();
      matmulByRows<T, kKeys, D>(ds[0], sharedAddress(values + group * kGroupRows * kPanel),
                                passingDouts);
      commitMatmuls();
      waitForMatmuls<1>();
      pin(p[0]);
      if (sight.hides(query, last, own, own + 16))
        hideFromQueries<1, kQueries>(p, sight, query, own);
      weigh<1, kQueries>(p, numbers[buffer][0], shape.scale * kLog2E);
      markDropped(p, drops, query, own);
      roundTo<T, kDrops>(roundedP, p[0]);
      pin(dv[0]);
      beginMatmuls();
      addMatmul<T, kQueries>(dv[0], roundedP, passingDouts);
      commitMatmuls();
      waitForMatmuls<1>();
      pin(ds[0]);
      differentiate<kDrops>(ds, p, numbers[buffer][1], drops.scale);
      roundTo<T>(roundedDs, ds[0]);
#pragma unroll
      for (int i = 0; i < kQueries / 16; ++i)
        storeMatrices(tiles.ds + offsetOf<kKeys>(row + lane % 16, 2 * i + lane / 16), roundedDs[i]);
      fenceForMatmuls();
      __syncthreads(); // dS of both groups' keys
      QuerySums<T, Plan> dq;
      pin(dq.terms);
      pin(dk[0]);
      beginMatmuls();
      dq.begin(tiles.ds, keys, group);
      commitMatmuls();
      addMatmul<T, kQueries>(dk[0], roundedDs, passing);
      commitMatmuls();
      waitForMatmuls<1>();
      pin(dq.terms);
      float *sum =
          ownSums + (int64_t(place.head) * queryTiles + query / kQueries) * Plan::kQueryTile;
      if (isLastVisit<Plan>(sight, query, key)) {
        if (!first)
          dq.load(sum);
        dq.round(headOf(call.dq, b, h), query, sight.queries, group, shape.scale);
      } else if (first) {
        dq.store(sum);
      } else {
        dq.add(sum);
      }
      waitForMatmuls<0>();
      pin(dv[0]);
      pin(dk[0]);
    }

    if (place.endsKeys(all)) {
      __syncthreads(); // both groups are done with the keys
      scaleBy(dk, shape.scale);
      if (kDrops)
        scaleBy(dv, drops.scale);
      int own = key + row;
      storePanels<kKeys, D>(headOf(call.dk, b, kv), dk[0], keys, row, own, sight.keys);
      storePanels<kKeys, D>(headOf(call.dv, b, kv), dv[0], values, row, own, sight.keys);
      fenceForMatmuls(); // of these tiles: keys and values will be copied here again
      clear(dk[0]);
      clear(dv[0]);
      if (place.endsHead(all))
        clearUnseen(call, place);
      ++keyTile;
    }
    place = coming;
  }
}

template <typename T, typename Plan>
void launch(const Stream &stream, const PreparedBackward<T> &call, float *sums, int64_t blocks) {
  withExtra<false>(call.shape, /*bias=*/false, [&](auto extra) {
    PARTITA_RT_LAUNCH((gradientsByHeads<T, Plan, extra()>), gridOf(blocks), Plan::kThreads,
                      Plan::kBytes, stream, call, sums, BackwardMaps(call), Extents(call.shape));
  });
}

} // namespace

#endif

template <typename T>
bool attentionBackwardByHeads(const Stream &stream, const MmaBackward<T> &operands, float *sums,
                              int64_t blocks) {
  const AttentionShape &shape = operands.shape;
  if (shape.sequence == 0 || shape.keySequence == 0 ||
      !onWarpGroups(shape, operands.dq, operands.dk, operands.dv, operands.dout, operands.out,
                    operands.q, operands.k, operands.v))
    return false;
#if defined(PARTITA_RT_WGMMA)
  PreparedBackward<T> call(operands);
  if (shape.headDim == 64)
    launch<T, HeadPlan<64>>(stream, call, sums, blocks);
  else
    launch<T, HeadPlan<128>>(stream, call, sums, blocks);
#endif
  return true;
}

template bool attentionBackwardByHeads(const Stream &, const MmaBackward<Half> &, float *, int64_t);
template bool attentionBackwardByHeads(const Stream &, const MmaBackward<BFloat16> &, float *,
                                       int64_t);

} // namespace partita_rt::cuda
