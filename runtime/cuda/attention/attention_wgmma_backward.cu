// Attention backward with warp-group matmuls, for 16-bit heads of 64 or 128 elements on sm_90.
// Formulas and roundings as in attention_mma_backward.cu. Two launches: dQ by tiles of queries,
// which also computes the delta and log-sum-exp of their rows, then dK and dV by tiles of keys.
//
// A block's warp groups have 64 keys each (dK and dV) or 64 queries (dQ). These are the rows of
// scores and dP, which, rounded, are the left operands of the matmuls that sum over the streamed
// rows. Streamed tiles have two buffers. dP is computed beside the weights, dV beside dS.

#include "cuda/attention/attention_wgmma_backward.cuh"
#include "cuda/attention/fused_attention.h"

namespace partita_rt::cuda {

#if defined(PARTITA_RT_WGMMA)

namespace {

/// The tiles of queries streamed past a tile of keys, with two buffers: those in `range`, for all heads of a
/// group, one after another.
template <typename T, typename Plan> class QueryCopies {
  static constexpr int D = Plan::kDim, kQueries = Plan::kPassing, kThreads = Plan::kThreads;
  static constexpr int kKeyTile = Plan::kOwn * D, kTile = kQueries * D;
  const PreparedBackward<T> &call;
  const BackwardMaps &maps;
  const QueryTiles &range;
  T *keys, *values, *queries, *douts;
  int b, kv, key, head, query, step = 0;
  const float *number; ///< logSumExp2; delta follows at the same distance as in the workspace
  Arrivals arrivals;

  __device__ const float *numbersOf() const {
    return call.logSumExp2 + call.rowOf(b, head, query) + int(threadIdx.x) % kQueries;
  }
  /// Starts copying a tile, the first one with the keys and values.
  __device__ void copyTiles() {
    uint64_t *barrier = arrivals.of(step);
    announceBytes(barrier, 2 * (kTile + (step == 0 ? kKeyTile : 0)) * sizeof(T));
    if (step == 0) {
      copyTile<Plan::kOwn, D>(keys, maps.k, key, kv, b, barrier);
      copyTile<Plan::kOwn, D>(values, maps.v, key, kv, b, barrier);
    }
    copyTile<kQueries, D>(queries + step % 2 * kTile, maps.q, query, head, b, barrier);
    copyTile<kQueries, D>(douts + step % 2 * kTile, maps.dout, query, head, b, barrier);
  }

public:
  /// keys: room for a tile of keys, one of values, and both buffers of queries and of their gradients.
  __device__ QueryCopies(const PreparedBackward<T> &call, const BackwardMaps &maps, T *keys,
                         uint64_t *barriers, int key, const QueryTiles &range)
      : call(call), maps(maps), range(range), keys(keys), values(keys + kKeyTile),
        queries(values + kKeyTile), douts(queries + 2 * kTile), b(int(blockIdx.z)),
        kv(int(blockIdx.y)), key(key), head(kv * int(call.shape.groups)), query(range.first),
        number(numbersOf()), arrivals(barriers) {}
  /// Starts copying the next tile: after the sequence zeros, also for the scalars, which add
  /// nothing.
  __device__ void next(float *toNumbers) {
    if (query >= range.end) {
      ++head;
      query = range.first;
      number = numbersOf();
    }
    if (threadIdx.x == 0)
      copyTiles();
    static_assert(kThreads % kQueries == 0);
    bool inside = query + int(threadIdx.x) % kQueries < call.shape.sequence;
#pragma unroll
    for (int i = 0; i < 2 * kQueries; i += kThreads)
      if (int at = i + int(threadIdx.x); at < 2 * kQueries)
        copyWordAsync(toNumbers + at,
                      at < kQueries ? number : number + (call.delta - call.logSumExp2), inside);
    commitCopies();
    query += kQueries;
    number += kQueries;
    ++step;
  }
  /// Waits for this thread's copies of the tile.
  __device__ void wait(int i) {
    waitForCopies<0>();
    arrivals.wait(i);
  }
};

/// Computes dk and dv of a tile of keys (x) of a key head (y).
template <typename T, typename Plan, Extra kExtra>
__global__ void __launch_bounds__(Plan::kThreads, Plan::kBlocks)
    keyGradientsByGroups(PreparedBackward<T> call, const __grid_constant__ BackwardMaps maps) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  constexpr int D = Plan::kDim, kKeys = Plan::kOwn, kQueries = Plan::kPassing;
  constexpr int kTile = kQueries * D;
  __shared__ uint64_t barriers[Arrivals::kBuffers];
  __shared__ float numbers[2][2][kQueries]; // logSumExp2 and delta of two tiles of queries
  const AttentionShape &shape = call.shape;
  T *keys = tilesIn<T>(dynamic), *values = keys + kKeys * D;
  T *queries = values + kKeys * D, *douts = queries + 2 * kTile;
  int group = groupOfThread(), row = int(threadIdx.x) / kWarp * 16; // the warp's first in the tile
  int64_t kv = blockIdx.y, b = blockIdx.z;
  Sight<int, kHasFirstKeys<kExtra>> sight(shape, b);
  constexpr bool kDrops = kExtra == Extra::Dropout;
  TileDrops<kDrops> drops(shape);
  int key = int(blockIdx.x) * kKeys;
  QueryTiles range(sight, int(shape.groups), key, kKeys, kQueries);
  QueryCopies<T, Plan> copies(call, maps, keys, barriers, key, range);
  if (range.tiles > 0)
    copies.next(&numbers[0][0][0]);
  __syncthreads(); // the barriers are made

  int first = key + row, ownKey = key + group * kGroupRows; // first keys of warp and group
  uint32_t ownKeys = sharedAddress(keys + group * kGroupRows * kPanel);
  uint32_t ownValues = sharedAddress(values + group * kGroupRows * kPanel);
  float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};
  QueryTile tile{int(kv * shape.groups), range.first};
  for (int i = 0; i < range.tiles; ++i) {
    copies.wait(i);
    __syncthreads(); // all threads' copies have arrived, and they are done with the previous ones
    if (i + 1 < range.tiles)
      copies.next(&numbers[(i + 1) % 2][0][0]);
    int at = tile.query, last = min(at + kQueries, sight.queries) - 1;
    drops.atHead(b, tile.head);
    tile = tile.after(range, kQueries);
    if (!sight.meets(at, last, ownKey, ownKey + kGroupRows))
      continue; // for all of the group
    uint32_t passing = sharedAddress(queries + i % 2 * kTile);
    uint32_t passingDouts = sharedAddress(douts + i % 2 * kTile);
    uint32_t roundedDs[kQueries / 16][4];
    attendByKeys<T, kKeys, D, kQueries>(roundedDs, dv, {ownKeys, ownValues, passing, passingDouts},
                                        sight, drops, at, last, first, numbers[i % 2][0],
                                        shape.scale * kLog2E, [] {});
    pin(dk[0]);
    beginMatmuls();
    addMatmul<T, kQueries>(dk[0], roundedDs, passing);
    commitMatmuls();
    waitForMatmuls<0>();
    pin(dv[0]);
    pin(dk[0]);
  }

  __syncthreads();
  scaleBy(dk, shape.scale);
  if (kDrops)
    scaleBy(dv, drops.scale);
  storePanels<kKeys, D>(headOf(call.dk, b, kv), dk[0], keys, row, first, sight.keys);
  storePanels<kKeys, D>(headOf(call.dv, b, kv), dv[0], values, row, first, sight.keys);
  if (call.sums) // for all of the block
    storeKeySums<Plan::kThreads / kWarp>(call, dk, dv, reinterpret_cast<float *>(queries), b, kv,
                                         key);
}

/// Computes prepareBackward's results for a lane's rows of C, for this kernel and for
/// keyGradientsByGroups. After the sequence a query sees no key. first: the first of the warp's
/// rows.
template <int D, typename T>
__device__ inline void prepareRows(const PreparedBackward<T> &call, int first, float (&shift)[2],
                                   float (&delta)[2]) {
  int64_t h = blockIdx.y, b = blockIdx.z;
  int lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int row = first + 8 * half + lane / 4;
    bool inside = row < call.shape.sequence;
    float sum = 0.0f, saved = Largest::kNone;
    if (inside) {
      const T *outs = headOf(call.out, b, h).row(row), *douts = headOf(call.dout, b, h).row(row);
      saved = call.logSumExp[call.rowOf(b, h, row)];
#pragma unroll
      for (int column = lane % 4 * kPack; column < D; column += 4 * kPack)
        addToDelta(sum, outs + column, douts + column);
    }
    delta[half] = overRowOfC<Sum>(sum);
    shift[half] = inBase2(saved);
    if (inside && lane % 4 == 0) {
      call.delta[call.rowOf(b, h, row)] = delta[half];
      call.logSumExp2[call.rowOf(b, h, row)] = shift[half];
    }
  }
}

/// Makes weights of scores whose rows are queries; shift: the lane's rows' logSumExp2.
template <int kColumns>
__device__ inline void weighRows(float (&scores)[kColumns][4], float factor,
                                 const float (&shift)[2]) {
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      scores[j][e] = powerOfTwo(fmaf(scores[j][e], factor, -shift[e / 2]));
}

/// Makes dS of dP, whose rows are queries, and their weights p.
template <int kColumns>
__device__ inline void differentiateRows(float (&ds)[kColumns][4], const float (&p)[kColumns][4],
                                         const float (&delta)[2]) {
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      ds[j][e] = p[j][e] * (ds[j][e] - delta[e / 2]);
}

/// Computes dq of a tile of queries (x) of a head (y), and its queries' scalars.
template <typename T, typename Plan, Extra kExtra>
__global__ void __launch_bounds__(Plan::kThreads, Plan::kBlocks)
    queryGradientsByGroups(PreparedBackward<T> call, const __grid_constant__ BackwardMaps maps) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  constexpr int D = Plan::kDim, kQueries = Plan::kOwn, kKeys = Plan::kPassing;
  constexpr int kTile = kKeys * D;
  __shared__ uint64_t barriers[Arrivals::kBuffers];
  const AttentionShape &shape = call.shape;
  T *queries = tilesIn<T>(dynamic), *douts = queries + kQueries * D;
  T *keys = douts + kQueries * D, *values = keys + 2 * kTile;
  int lane = int(threadIdx.x) % kWarp, row = int(threadIdx.x) / kWarp * 16;
  int group = groupOfThread();
  int64_t h = blockIdx.y, b = blockIdx.z, kv = h / shape.groups;
  Sight<int, kHasFirstKeys<kExtra>> sight(shape, b);
  TileDrops<kExtra == Extra::Dropout> drops(shape);
  drops.atHead(b, h);
  int query = int(gridDim.x - 1 - blockIdx.x) * kQueries;
  int begin = sight.first(query) / kKeys * kKeys;
  int end = sight.end(min(query + kQueries, sight.queries) - 1);
  Arrivals arrivals(barriers);
  auto copyKeys = [&](int key, int buffer) { // the first ones with the queries
    if (threadIdx.x != 0 || key >= end)
      return;
    uint64_t *barrier = arrivals.of(buffer);
    announceBytes(barrier, 2 * (kTile + (key == begin ? kQueries * D : 0)) * sizeof(T));
    if (key == begin) {
      copyTile<kQueries, D>(queries, maps.q, query, int(h), int(b), barrier);
      copyTile<kQueries, D>(douts, maps.dout, query, int(h), int(b), barrier);
    }
    copyTile<kKeys, D>(keys + buffer * kTile, maps.k, key, int(kv), int(b), barrier);
    copyTile<kKeys, D>(values + buffer * kTile, maps.v, key, int(kv), int(b), barrier);
  };
  copyKeys(begin, 0);
  __syncthreads(); // the barriers are made

  int first = query + row, last = min(first + 16, sight.queries) - 1; // of the warp
  int groupFirst = query + group * kGroupRows;
  int groupLast = min(groupFirst + kGroupRows, sight.queries) - 1;
  uint32_t ownQueries = sharedAddress(queries + group * kGroupRows * kPanel);
  uint32_t ownDouts = sharedAddress(douts + group * kGroupRows * kPanel);
  float dq[1][D / 8][4] = {}, shift[2], delta[2];
  prepareRows<D>(call, first, shift, delta);
  for (int i = 0, key = begin; key < end; ++i, key += kKeys) {
    arrivals.wait(i);
    __syncthreads(); // all threads are done with the last ones
    copyKeys(key + kKeys, (i + 1) % 2);
    if (!sight.meets(groupFirst, groupLast, key, key + kKeys))
      continue; // for all of the group
    uint32_t passing = sharedAddress(keys + i % 2 * kTile);
    float p[1][kKeys / 8][4], ds[1][kKeys / 8][4];
    uint32_t rounded[kKeys / 16][4];
    beginMatmuls();
    matmulByRows<T, kQueries, D>(p[0], ownQueries, passing);
    commitMatmuls();
    matmulByRows<T, kQueries, D>(ds[0], ownDouts, sharedAddress(values + i % 2 * kTile));
    commitMatmuls();
    waitForMatmuls<1>();
    pin(p[0]);
    if (sight.hides(first, last, key, key + kKeys))
      hideKeys<1, kKeys>(p, sight, first + lane / 4, key);
    weighRows(p[0], shape.scale * kLog2E, shift);
    waitForMatmuls<0>();
    pin(ds[0]);
    dropOfQueries(ds, drops, first + lane / 4, key, drops.scale);
    differentiateRows(ds[0], p[0], delta);
    roundTo<T>(rounded, ds[0]);
    pin(dq[0]);
    beginMatmuls();
    addMatmul<T, kKeys>(dq[0], rounded, passing);
    commitMatmuls();
    waitForMatmuls<0>();
    pin(dq[0]);
  }

  __syncthreads();
  scaleBy(dq, shape.scale);
  storePanels<kQueries, D>(headOf(call.dq, b, h), dq[0], queries, row, first, sight.queries);
  if (call.sums) // for all of the block
    storeQuerySums<Plan::kThreads / kWarp>(call, dq, reinterpret_cast<float *>(keys), query);
}

template <typename Plan>
constexpr int kBytes = (2 * Plan::kOwn + 4 * Plan::kPassing) * Plan::kDim * 2 + kBlockBytes;

template <typename T, typename KeyPlan, typename QueryPlan>
void launch(const Stream &stream, const PreparedBackward<T> &call) {
  const AttentionShape &shape = call.shape;
  BackwardMaps maps(call);
  withExtra<false>(shape, /*bias=*/false, [&](auto extra) {
    if (shape.sequence > 0)
      PARTITA_RT_LAUNCH(
          (queryGradientsByGroups<T, PlanFor<QueryPlan, extra()>, extra()>),
          attentionGrid(ceilDiv(shape.sequence, QueryPlan::kOwn), shape.heads, shape.batch),
          QueryPlan::kThreads, kBytes<QueryPlan>, stream, call, maps);
    if (shape.keySequence > 0)
      PARTITA_RT_LAUNCH((keyGradientsByGroups<T, KeyPlan, extra()>),
                        attentionGrid(ceilDiv(shape.keySequence, KeyPlan::kOwn),
                                      shape.heads / shape.groups, shape.batch),
                        KeyPlan::kThreads, kBytes<KeyPlan>, stream, call, maps);
  });
}

} // namespace

#endif

template <typename T>
bool attentionBackwardWgmmaByTiles(const Stream &stream, const MmaBackward<T> &operands) {
  const AttentionShape &shape = operands.shape;
  if (!onWarpGroups(shape, operands.dq, operands.dk, operands.dv, operands.dout, operands.out,
                    operands.q, operands.k, operands.v))
    return false;
#if defined(PARTITA_RT_WGMMA)
  if (shape.batch * shape.heads == 0)
    return true;
  PreparedBackward<T> call(operands);
  if (shape.headDim == 64)
    launch<T, GroupPlan<64, 1, 128, 2>, GroupPlan<64, 1, 64, 4>>(stream, call);
  else
    launch<T, GroupPlan<128, 2, 64, 1>, GroupPlan<128, 1, 64, 2>>(stream, call);
#endif
  return true;
}

template <typename T>
bool attentionBackwardWgmma(const Stream &stream, const MmaBackward<T> &operands) {
  AttentionWork work = attentionWork(operands.shape, kDTypeOf<T>);
  int64_t heads = attentionHeadBlocks(work), slots = attentionTurnSlots(work);
  if (attentionBy() != AttentionBy::Tiles && heads + slots > 0) {
    float *sums = operands.workspace + attentionHeadSumsAt(work.queries);
    int64_t blocks = heads > 0 ? least(heads, multiprocessors()) : multiprocessors();
    if (attentionBackwardWgmmaJoint(stream, operands, sums, slots, blocks))
      return true;
  }
  return attentionBackwardWgmmaByTiles(stream, operands);
}

template bool attentionBackwardWgmmaByTiles(const Stream &, const MmaBackward<Half> &);
template bool attentionBackwardWgmmaByTiles(const Stream &, const MmaBackward<BFloat16> &);
template bool attentionBackwardWgmma(const Stream &, const MmaBackward<Half> &);
template bool attentionBackwardWgmma(const Stream &, const MmaBackward<BFloat16> &);

} // namespace partita_rt::cuda
