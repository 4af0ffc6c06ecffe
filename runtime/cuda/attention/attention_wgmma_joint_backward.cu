// Attention's joint backward pass, by warp groups: all gradients in one launch, with five matmuls per tile of
// scores. Formulas and roundings as in attention_mma_backward.cu.
//
// The two launches of attention_wgmma_backward.cu compute scores and dP twice, once for dQ and once for
// dK and dV. Here the tiles of queries that see a tile of keys pass by, so dK and dV are sums in registers, and
// the block adds dS K to the dQ of each tile of queries in scratch memory, which stays in the L2 cache. An element
// of dQ gets its terms in one order, from tiles of keys in ascending order: there is no atomic between threads
// whose order would be open. The first tile of keys that a tile of queries sees stores its term, and the last one
// rounds the sum to dQ.
//
// With enough heads to keep every multiprocessor busy, a block owns a head of keys with all its heads of queries
// (by heads): an element of dQ belongs to one thread, which never waits. Otherwise blocks have a tile of keys
// each, and take turns in adding to a tile of dQ (by turns): as FlashAttention-3's deterministic backward pass, but
// with sums that other heads reuse once a head is complete. attentionHeadBlocks and attentionTurnSlots
// (workspaces.h) choose between them, from the shape.
//
// The block's two warp groups have 64 keys each. Tiles of dS, whose rows are keys, pass through shared
// memory, for dS^T K over the keys of both.

#include "cuda/attention/attention_sums.cuh"
#include "cuda/attention/attention_wgmma_backward.cuh"
#include "cuda/attention/attention_wgmma_joint.cuh"
#include "cuda/attention/recent_sums.cuh"

namespace partita_rt::cuda {

#if defined(PARTITA_RT_WGMMA)

namespace {

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
    addToDelta(delta, outs + at, douts + at);
  }
#pragma unroll
  for (int with = 1; with < kThreadsOfRow; with *= 2)
    delta += __shfl_xor_sync(kAllLanes, delta, with);
  if (part != 0)
    return;
  float shift = inBase2(numbers[row]);
  numbers[row] = shift;
  numbers[Plan::kQueries + row] = delta;
  if (row < rows) {
    call.logSumExp2[number + row] = shift;
    call.delta[number + row] = delta;
  }
}

/// A group's half of the dQ of a tile of queries: 64 rows, or 64 columns.
template <typename T, typename Plan> struct QuerySums {
  static constexpr bool kByRows = Plan::kDim == 64;
  float terms[1][8][4];
  int group, row; ///< the warp's first row in the tile

  __device__ explicit QuerySums(int group)
      : group(group), row(int(threadIdx.x) / kWarp % 4 * 16 + (kByRows ? group * kGroupRows : 0)) {}
  /// Starts computing dS^T K.
  __device__ void begin(const T *ds, const T *keys) {
    constexpr int kPanelBytes = Plan::kKeys * kPanel * 2, kStep = 16 * kPanel * 2;
    uint64_t left = operandAt(sharedAddress(ds) + uint32_t(kByRows ? group * kPanelBytes : 0));
    uint64_t right = operandAt(sharedAddress(keys) + uint32_t(kByRows ? 0 : group * kPanelBytes));
#pragma unroll
    for (int i = 0; i < Plan::kKeys / 16; ++i)
      multiplyGroup<T, true, true>(terms[0], behind(left, i * kStep), behind(right, i * kStep),
                                   i > 0);
  }
  /// Adds the sum so far, or becomes it.
  __device__ void load(const float *sums) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float4 sum = loadFourRecent(sums + 4 * j * Plan::kThreads);
      terms[0][j][0] += sum.x;
      terms[0][j][1] += sum.y;
      terms[0][j][2] += sum.z;
      terms[0][j][3] += sum.w;
    }
  }
  __device__ void store(float *sums) const {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      reinterpret_cast<float4 *>(sums)[j * Plan::kThreads] =
          float4{terms[0][j][0], terms[0][j][1], terms[0][j][2], terms[0][j][3]};
  }
  __device__ void add(float *sums) const {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      addToRecent(sums + 4 * j * Plan::kThreads, terms[0][j]);
  }
  /// Writes them, rounded, to rows [query, count) of dq.
  __device__ void round(const HeadRows<T> &dq, int query, int count) const {
    int lane = int(threadIdx.x) % kWarp, at = query + row + lane / 4;
    int column = (kByRows ? 0 : group * 64) + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (at + 8 * half < count) {
        T *to = dq.row(at + 8 * half) + column;
#pragma unroll
        for (int j = 0; j < 8; ++j)
          *reinterpret_cast<uint32_t *>(to + 8 * j) =
              roundPair<T>(terms[0][j][2 * half], terms[0][j][2 * half + 1]);
      }
  }
  /// Stores the partial sums of their rows, those of [query, count). partials: of the head's first column,
  /// `pitch` apart. space: a tile of the block's shared memory that nobody uses; all threads must call this.
  __device__ void storePartials(float *partials, int64_t pitch, float *space, int64_t b, int query,
                                int count) const {
    constexpr int D = Plan::kDim, kWarps = kByRows ? 8 : 4;
    int warp = int(threadIdx.x) / kWarp % kWarps;
    sumColumnsOfC</*kZeros=*/true>(space + warp * D + (kByRows ? 0 : group * 64), terms,
                                   query + row, count);
    __syncthreads();
    storePartialSums<D, kWarps, 16>(partials, pitch, space, b, query, count, D);
  }
};

/// What a block's threads have of its current place.
template <typename T, typename Plan, Extra kExtra> struct JointStep {
  static constexpr bool kDocuments = kHasFirstKeys<kExtra>;
  Place<Plan, kDocuments> place;
  Sight<int, kDocuments> sight;
  int64_t b, h;
  int group, row; ///< the thread's warp group, and its warp's first row in a tile of keys
  bool first;     ///< the tile of keys is the first that sees the tile of queries
  T *keys, *values, *queries, *douts, *ds;
  float *numbers; ///< logSumExp2, then delta, of the queries

  /// keyTile: the block's number of the tile of keys.
  __device__ JointStep(const Place<Plan, kDocuments> &place, const Extents &all,
                       const AttentionShape &shape, const JointTiles<T, Plan> &tiles, int buffer,
                       int keyTile, int group, float *numbers)
      : place(place), sight(shape, place.batch), b(place.batch), h(place.queryHead(all)),
        group(group), row(int(threadIdx.x) / kWarp * 16),
        first(isFirstVisit<Plan>(sight, place.query, place.key)),
        keys(tiles.keys + (keyTile & 1) * Plan::kKeyTile),
        values(tiles.values + (keyTile & 1) * Plan::kKeyTile),
        queries(tiles.queries + buffer * Plan::kQueryTile),
        douts(tiles.douts + buffer * Plan::kQueryTile), ds(tiles.ds), numbers(numbers) {}
};

/// Computes a group's probabilities and gradients of scores, adds to its dv, and stores dS for both groups.
template <typename T, typename Plan, Extra kExtra, typename Drops, typename Meanwhile>
__device__ inline void attend(const PreparedBackward<T> &call, const JointStep<T, Plan, kExtra> &at,
                              const Drops &drops, float (&dv)[1][Plan::kDim / 8][4],
                              uint32_t (&roundedDs)[Plan::kQueries / 16][4],
                              const Meanwhile &meanwhile) {
  constexpr int D = Plan::kDim, kKeys = Plan::kKeys, kQueries = Plan::kQueries;
  int query = at.place.query, last = min(query + kQueries, at.sight.queries) - 1;
  int own = at.place.key + at.row, lane = int(threadIdx.x) % kWarp; // own: the warp's first key
  GroupTiles tiles{sharedAddress(at.keys + at.group * kGroupRows * kPanel),
                   sharedAddress(at.values + at.group * kGroupRows * kPanel),
                   sharedAddress(at.queries), sharedAddress(at.douts)};
  attendByKeys<T, kKeys, D, kQueries>(roundedDs, dv, tiles, at.sight, drops, query, last, own,
                                      at.numbers, call.shape.scale * kLog2E, meanwhile);
#pragma unroll
  for (int i = 0; i < kQueries / 16; ++i)
    storeMatrices(at.ds + offsetOf<kKeys>(at.row + lane % 16, 2 * i + lane / 16), roundedDs[i]);
}

/// Adds a place's dQ to the sum of its queries, or rounds it to dq. All threads must call this.
template <typename T, typename Plan, Extra kExtra>
__device__ inline void addQueries(const PreparedBackward<T> &call,
                                  const JointStep<T, Plan, kExtra> &at, QuerySums<T, Plan> &dq,
                                  float *sum) {
  int query = at.place.query;
  if (!isLastVisit<Plan>(at.sight, query, at.place.key))
    return at.first ? dq.store(sum) : dq.add(sum);
  if (!at.first)
    dq.load(sum);
  scaleBy(dq.terms, call.shape.scale);
  dq.round(headOf(call.dq, at.b, at.h), query, at.sight.queries);
  if (call.sums) {
    __syncthreads(); // both groups are done with dS
    dq.storePartials(call.sums.data + at.h * Plan::kDim, call.sums.columns,
                     reinterpret_cast<float *>(at.ds), at.b, query, at.sight.queries);
  }
}

/// Writes dk and dv of a tile of keys, which both groups are done with.
template <typename T, typename Plan, Extra kExtra>
__device__ inline void
finishKeys(const PreparedBackward<T> &call, const JointStep<T, Plan, kExtra> &at, float dropScale,
           float (&dk)[1][Plan::kDim / 8][4], float (&dv)[1][Plan::kDim / 8][4]) {
  constexpr int D = Plan::kDim, kKeys = Plan::kKeys;
  int64_t kv = at.place.keyHead;
  int own = at.place.key + at.row, count = at.sight.keys;
  scaleBy(dk, call.shape.scale);
  if (kExtra == Extra::Dropout)
    scaleBy(dv, dropScale);
  storePanels<kKeys, D>(headOf(call.dk, at.b, kv), dk[0], at.keys, at.row, own, count);
  storePanels<kKeys, D>(headOf(call.dv, at.b, kv), dv[0], at.values, at.row, own, count);
  fenceForMatmuls(); // of these tiles: keys and values will be copied here again
  if (call.sums)
    storeKeySums<Plan::kThreads / kWarp, /*kZeros=*/true>(
        call, dk, dv, reinterpret_cast<float *>(at.ds), at.b, kv, at.place.key);
  clear(dk);
  clear(dv);
}

/// Computes all gradients. sums: attentionHeadSums floats for each slot.
template <typename T, typename Plan, Extra kExtra, bool kTurns>
__global__ void __launch_bounds__(Plan::kThreads, 1)
    jointGradients(PreparedBackward<T> call, float *sums, GroupTurns<kTurns> turns,
                   const __grid_constant__ BackwardMaps maps, Extents all) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ uint64_t barriers[2 * Arrivals::kBuffers]; // of queries, and of keys
  constexpr int D = Plan::kDim, kQueries = Plan::kQueries;
  constexpr bool kDocuments = kHasFirstKeys<kExtra>;
  __shared__ float numbers[2][2][kQueries]; // logSumExp2 and delta of two tiles of queries
  __shared__ int tickets[2];                // the item after that of a step's place
  const AttentionShape &shape = call.shape;
  JointTiles<T, Plan> tiles(tilesIn<T>(dynamic));
  int group = groupOfThread();
  TileDrops<kExtra == Extra::Dropout> drops(shape);
  float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};

  turns.draw(tickets, 1);
  PlaceCopies<T, Plan, kDocuments> copies(call, maps, all, tiles, /*prepares=*/!kTurns, barriers);
  __syncthreads(); // the barriers are made
  int item = kTurns ? tickets[1] : int(blockIdx.x);
  Place<Plan, kDocuments> place(all, shape, turns, item);
  if (place.isInside(all)) {
    copies.startKeys(place, 0);
    copies.startQueries(place, 0, numbers[0][0]);
    if (place.template endsItem<kTurns>(all))
      turns.draw(tickets, 0);
  }
  bool startsKeys = true;
  for (int step = 0, keyTile = 0; place.isInside(all); ++step) {
    int buffer = step & 1;
    JointStep<T, Plan, kExtra> now(place, all, shape, tiles, buffer, keyTile, group,
                                   numbers[buffer][0]);
    copies.waitForQueries(step);
    if (startsKeys)
      copies.waitForKeys(keyTile);
    __syncthreads(); // all threads' copies have arrived, and they are done with the last place
    if (!kTurns && now.first && place.hasQueries()) {
      prepareTile<Plan>(call, tiles.outs, now.douts, now.numbers,
                        call.rowOf(now.b, now.h, place.query), now.sight.queries - place.query);
      __syncthreads();
    }
    bool endsKeys = place.endsKeys(), endsItem = place.template endsItem<kTurns>(all);
    if (endsItem)
      item = kTurns ? tickets[buffer] : item + int(gridDim.x);
    Place<Plan, kDocuments> coming =
        endsItem ? Place<Plan, kDocuments>(all, shape, turns, item) : place.next(all, shape);
    if (coming.isInside(all)) {
      if (endsKeys)
        copies.startKeys(coming, keyTile + 1);
      copies.startQueries(coming, step + 1, numbers[1 - buffer][0]);
      if (coming.template endsItem<kTurns>(all))
        turns.draw(tickets, step + 1);
    }

    if (place.hasQueries()) {
      uint32_t roundedDs[kQueries / 16][4];
      drops.atHead(now.b, now.h);
      attend(call, now, drops, dv, roundedDs,
             [&] { turns.take(place, startsKeys, now.first, all); });
      fenceForMatmuls();
      __syncthreads(); // dS of both groups' keys, and the turn
      QuerySums<T, Plan> dq(group);
      pin(dq.terms[0]);
      pin(dk[0]);
      beginMatmuls();
      dq.begin(tiles.ds, now.keys);
      commitMatmuls();
      addMatmul<T, kQueries>(dk[0], roundedDs, sharedAddress(now.queries));
      commitMatmuls();
      waitForMatmuls<1>();
      pin(dq.terms[0]);
      addQueries(call, now, dq,
                 sums + int64_t(place.sums(all)) * Plan::kQueryTile + 4 * int(threadIdx.x));
      waitForMatmuls<0>();
      pin(dv[0]);
      pin(dk[0]);
    }

    if (endsKeys) {
      __syncthreads(); // both groups are done with the keys
      turns.end(place, all);
      finishKeys(call, now, drops.scale, dk, dv);
      if (place.hasLastKeys(all))
        clearUnseen(call, place);
      ++keyTile;
    }
    place = coming;
    startsKeys = endsKeys;
  }
}

template <typename T, bool kTurns>
void launch(const Stream &stream, const PreparedBackward<T> &call, float *sums,
            const GroupTurns<kTurns> &turns, int64_t blocks) {
  auto withPlan = [&](auto plan) {
    using Plan = decltype(plan);
    withExtra<false>(call.shape, /*bias=*/false, [&](auto extra) {
      PARTITA_RT_LAUNCH((jointGradients<T, Plan, extra(), kTurns>), gridOf(blocks), Plan::kThreads,
                        Plan::kBytes, stream, call, sums, turns, BackwardMaps(call),
                        Extents(call.shape, plan));
    });
  };
  if (call.shape.headDim == 64)
    withPlan(JointPlan<64>());
  else
    withPlan(JointPlan<128>());
}

template <typename T>
void launchByTurns(const Stream &stream, const PreparedBackward<T> &call, float *sums,
                   int64_t slots, int64_t blocks) {
  AttentionWork work = attentionWork(call.shape, kDTypeOf<T>);
  auto turns = beginTurns<kGroupThreads>(stream, work, sums, slots);
  prepareBackward(stream, call);
  launch(stream, call, sums, turns,
         least(blocks, attentionKeyHeads(work) * attentionKeyTiles(work)));
}

} // namespace
#endif

template <typename T>
bool attentionBackwardWgmmaJoint(const Stream &stream, const MmaBackward<T> &operands, float *sums,
                                 int64_t slots, int64_t blocks) {
  const AttentionShape &shape = operands.shape;
  if (!isJointAttention(attentionWork(shape, kDTypeOf<T>)) ||
      !onWarpGroups(shape, operands.dq, operands.dk, operands.dv, operands.dout, operands.out,
                    operands.q, operands.k, operands.v))
    return false;
#if defined(PARTITA_RT_WGMMA)
  PreparedBackward<T> call(operands);
  if (slots > 0)
    launchByTurns(stream, call, sums, slots, blocks);
  else
    launch(stream, call, sums, GroupTurns<false>(), blocks);
#endif
  return true;
}

template bool attentionBackwardWgmmaJoint(const Stream &, const MmaBackward<Half> &, float *,
                                          int64_t, int64_t);
template bool attentionBackwardWgmmaJoint(const Stream &, const MmaBackward<BFloat16> &, float *,
                                          int64_t, int64_t);

} // namespace partita_rt::cuda
