// Attention's joint backward pass by mma.sync: all gradients in one launch, with five matmuls per tile of scores where
// the two of attention_mma_backward.cu, which both compute scores and dP, have seven. Formulas, roundings and
// fragments are theirs: rows are keys.
//
// A block has a tile of keys, whose dK and dV are sums in registers, and 64 queries pass at a time. dS goes through
// shared memory, where the warps share out dQ = dS^T K of these queries, and to a sum in the workspace, which stays in
// the L2 cache. Blocks take turns in adding to it (Turns in attention_joint.cuh), so an element of dQ gets its terms in
// one order; the first tile of keys that sees the queries stores its term, and the last one rounds the sum to dQ.
//
// A turn is taken between the first scores of a step and its first terms: by then the additions of the step before
// have arrived, so announcing them takes no time. By heads, as warp groups may have it, would need a slot of sums for
// every block, and where shared memory allows there are two blocks on a multiprocessor: for heads of 64 on an A100, for
// all on GPUs with 228 KB.

#include "cuda/attention/attention_joint.cuh"
#include "cuda/attention/recent_sums.cuh"
#include "cuda/cuda.h"

namespace partita_rt::cuda {

namespace {

/// A block for heads of kDim elements: its keys, the queries of a step, and those whose scores it computes at a time.
template <int kDim_> struct MmaJointPlan {
  static constexpr int kDim = kDim_, kThreads = kMmaThreads;
  static constexpr int kTiles = kKeyTiles<kDim>, kKeys = kKeysOfBlock<kDim>;
  static_assert(kKeys == attentionMmaTileKeys(kDim));
  static constexpr int kQueries = 64, kPart = kPassingQueries<kDim>, kParts = kQueries / kPart;
  static constexpr int kPassing = kQueries * kMmaPitch<kDim>; // elements
  /// K and V, Q with two buffers, dO, and dS of a part.
  static constexpr int kBytes =
      mmaTileBytes<kDim, 2 * kKeys + 3 * kQueries>() + mmaTileBytes<kPart, kKeys>();
  /// sm_86 and sm_89 have 99 KB for a block, static memory included.
  static_assert(kBytes <= 96 * 1024);
  /// Of a warp: the tiles of 16 queries and the columns of its terms of a part's dQ.
  static constexpr int kRowTiles = kPart / 32, kColumns = kDim / 2;
};
using JointTurns = Turns<true, kMmaThreads / 2>;

/// A warp's terms of the dQ of a part's queries: half of the queries, half of the elements.
template <typename T, typename Plan> struct PartTerms {
  static constexpr int D = Plan::kDim, kTiles = Plan::kRowTiles, kColumns = Plan::kColumns;
  float terms[kTiles][kColumns / 8][4] = {};
  int row, column; ///< the warp's first ones

  __device__ PartTerms()
      : row(int(threadIdx.x) / kWarp % 2 * 16 * kTiles),
        column(int(threadIdx.x) / kWarp / 2 * kColumns) {}
  /// Adds dS^T K over the tile's keys.
  __device__ void multiply(const T *ds, const T *keys) {
    int lane = int(threadIdx.x) % kWarp;
    const T *a = ds + laneOfRowsB<Plan::kPart>(lane) + row, *b = keys + laneOfA<D>(lane) + column;
#pragma unroll
    for (int key = 0; key < Plan::kKeys; key += 16) {
      uint32_t left[kTiles][4];
#pragma unroll
      for (int i = 0; i < kTiles; ++i)
        loadTransposed(left[i], a + key * kMmaPitch<Plan::kPart> + 16 * i);
      addRounded<kColumns>(terms, left, b + key * kMmaPitch<D>);
    }
  }
  /// Calls visit(term, its sum) for the thread's terms: a warp's sums lie side by side.
  template <typename Visit> __device__ void forSums(float *sums, Visit visit) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          visit(terms[i][j][e],
                sums + ((i * (kColumns / 8) + j) * 4 + e) * kMmaThreads + int(threadIdx.x));
  }
  /// Writes them, rounded, to rows [query, count) of dq.
  __device__ void round(const HeadRows<T> &dq, int query, int count) const {
    int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int at = query + row + 16 * i + 8 * half + lane / 4;
        if (at >= count)
          continue;
        T *to = dq.row(at) + column + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < kColumns / 8; ++j)
          *reinterpret_cast<uint32_t *>(to + 8 * j) =
              roundPair<T>(terms[i][j][2 * half], terms[i][j][2 * half + 1]);
      }
  }
};

/// Shared memory of a block.
template <typename T, typename Plan> struct MmaJointTiles {
  static constexpr int D = Plan::kDim, kKeyTile = Plan::kKeys * kMmaPitch<D>;
  T *keys, *values, *douts, *queries, *ds;
  __device__ explicit MmaJointTiles(T *at)
      : keys(at), values(keys + kKeyTile), douts(values + kKeyTile),
        queries(douts + Plan::kPassing), ds(queries + 2 * Plan::kPassing) {}
};

/// What a block's threads have of its current step.
template <typename T, typename Plan, Extra kExtra> struct MmaJointStep {
  static constexpr bool kDocuments = kHasFirstKeys<kExtra>;
  Place<Plan, kDocuments> place;
  Sight<int, kDocuments> sight;
  int h, firstKey;  ///< the head of queries, and the first of the warp's keys
  bool first, last; ///< the tile of keys is the first that sees the tile of queries, or the last
  const T *queries;
  const float *numbers; ///< logSumExp2, then delta, of the queries
  float *sums;          ///< of the tile's dQ

  __device__ MmaJointStep(const Place<Plan, kDocuments> &place, const Extents &all,
                          const AttentionShape &shape, const T *queries, const float *numbers,
                          float *allSums)
      : place(place), sight(shape, place.batch), h(place.queryHead(all)),
        firstKey(place.key + int(threadIdx.x) / kWarp * 16 * Plan::kTiles),
        first(isFirstVisit<Plan>(sight, place.query, place.key)),
        last(isLastVisit<Plan>(sight, place.query, place.key)), queries(queries), numbers(numbers),
        sums(allSums + int64_t(place.sums(all)) * (Plan::kQueries * Plan::kDim)) {}
};

/// Computes dS of a warp's keys and a part's queries, from `offset` on, and adds to its dk and dv.
template <typename T, typename Plan, Extra kExtra, typename Drops>
__device__ inline void
attendPart(uint32_t (&ds)[Plan::kPart / 16][Plan::kTiles][4], const AttentionShape &shape,
           const MmaJointStep<T, Plan, kExtra> &at, const MmaJointTiles<T, Plan> &tiles,
           const Drops &drops, float (&dk)[Plan::kTiles][Plan::kDim / 8][4],
           float (&dv)[Plan::kTiles][Plan::kDim / 8][4], int offset) {
  constexpr int D = Plan::kDim, kTiles = Plan::kTiles, kPart = Plan::kPart, kRows = 16 * kTiles;
  constexpr bool kDrops = kMayDrop<kExtra>;
  int lane = int(threadIdx.x) % kWarp, own = at.firstKey - at.place.key;
  int query = at.place.query + offset, last = min(query + kPart, at.sight.queries) - 1;
  if (last < query || !at.sight.meets(query, last, at.firstKey, at.firstKey + kRows)) {
    clear(ds);
    return;
  }
  const T *queries = at.queries + offset * kMmaPitch<D>;
  const T *douts = tiles.douts + offset * kMmaPitch<D>;
  float p[kTiles][kPart / 8][4] = {}, dp[kTiles][kPart / 8][4] = {};
  multiplyByRows<kTiles, kPart, D>(p, tiles.keys + own * kMmaPitch<D> + laneOfA<D>(lane),
                                   queries + laneOfRowsB<D>(lane));
  if (at.sight.hides(query, last, at.firstKey, at.firstKey + kRows))
    hideFromQueries<kTiles, kPart>(p, at.sight, query, at.firstKey);
  weigh<kTiles, kPart>(p, at.numbers + offset, shape.scale * kLog2E);
  markDropped(p, drops, query, at.firstKey);
  addWeighted<kTiles, kPart, D, kDrops>(dv, p, douts + laneOfA<D>(lane));
  multiplyByRows<kTiles, kPart, D>(dp, tiles.values + own * kMmaPitch<D> + laneOfA<D>(lane),
                                   douts + laneOfRowsB<D>(lane));
  differentiate<kDrops>(dp, p, at.numbers + Plan::kQueries + offset, drops.scale);
#pragma unroll
  for (int j = 0; j < kPart / 16; ++j) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
      roundWeights<T>(ds[j][i], dp[i][2 * j], dp[i][2 * j + 1]);
    addRounded<D>(dk, ds[j], queries + 16 * j * kMmaPitch<D> + laneOfA<D>(lane));
  }
}

/// Stores dS of a warp's keys for all warps. to: the row of its first key.
template <typename Plan, typename T>
__device__ inline void
storeScoreGradients(T *to, const uint32_t (&ds)[Plan::kPart / 16][Plan::kTiles][4]) {
  int lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int j = 0; j < Plan::kPart / 16; ++j)
#pragma unroll
    for (int i = 0; i < Plan::kTiles; ++i)
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        int row = 16 * i + part % 2 * 8 + lane / 4, column = 16 * j + part / 2 * 8 + lane % 4 * 2;
        *reinterpret_cast<uint32_t *>(to + row * kMmaPitch<Plan::kPart> + column) = ds[j][i][part];
      }
}

/// Adds a part's dQ to the sum of its queries, or rounds it to dq. partials: room for the sums of the columns of 16 or
/// 32 queries each.
template <typename T, typename Plan, Extra kExtra>
__device__ inline void addPart(const PreparedBackward<T> &call,
                               const MmaJointStep<T, Plan, kExtra> &at, PartTerms<T, Plan> &dq,
                               float (&partials)[Plan::kParts * 2][Plan::kDim], int part) {
  float *sums = at.sums + part * (Plan::kPart * Plan::kDim);
  if (!at.last) {
    if (at.first)
      return dq.forSums(sums, [](float term, float *sum) { *sum = term; });
    return dq.forSums(sums, [](float term, float *sum) { addToRecent(sum, term); });
  }
  if (!at.first)
    dq.forSums(sums, [](float &term, const float *sum) { term += loadRecent(sum); });
  scaleBy(dq.terms, call.shape.scale);
  int query = at.place.query + part * Plan::kPart;
  dq.round(headOf(call.dq, at.place.batch, at.h), query, at.sight.queries);
  if (call.sums)
    sumColumnsOfC</*kZeros=*/true>(partials[2 * part + int(threadIdx.x) / kWarp % 2] + dq.column,
                                   dq.terms, query + dq.row, at.sight.queries);
}

/// Starts copies of a block's tiles; the numbers of a tile of queries travel in registers until startDouts.
template <typename T, typename Plan> struct MmaJointCopies {
  static constexpr int D = Plan::kDim, kQueries = Plan::kQueries;
  const PreparedBackward<T> &call;
  const Extents &all;
  MmaJointTiles<T, Plan> tiles;
  QueryNumbers<kQueries, /*kBias=*/false> coming = {};

  template <typename Place> __device__ void startKeys(const Place &place) const {
    startKeysAndValues<Plan::kKeys, D>(call, tiles.keys, tiles.values, place.batch, place.keyHead,
                                       place.key);
  }
  template <typename Place> __device__ void startQueries(const Place &place, int buffer) {
    int h = place.queryHead(all);
    copyTile<kQueries, D>(tiles.queries + buffer * Plan::kPassing, headOf(call.q, place.batch, h),
                          place.query, all.queries, D, call.qPacks);
    coming.load(call, place.batch, {h, place.query});
  }
  template <typename Place>
  __device__ void startDouts(const Place &place, float (&numbers)[2][kQueries]) const {
    copyTile<kQueries, D>(tiles.douts, headOf(call.dout, place.batch, place.queryHead(all)),
                          place.query, all.queries, D, call.doutPacks);
    coming.keep(numbers);
  }
};

/// Writes dk and dv of a tile of keys, with which all threads are done, and clears them.
template <typename T, typename Plan, Extra kExtra>
__device__ inline void finishKeys(const PreparedBackward<T> &call,
                                  const MmaJointStep<T, Plan, kExtra> &at,
                                  const MmaJointTiles<T, Plan> &tiles, float dropScale,
                                  float (&dk)[Plan::kTiles][Plan::kDim / 8][4],
                                  float (&dv)[Plan::kTiles][Plan::kDim / 8][4]) {
  constexpr int D = Plan::kDim;
  int64_t b = at.place.batch, kv = at.place.keyHead;
  int own = (at.firstKey - at.place.key) * kMmaPitch<D>;
  storeKeyGradients<D>(call, dk, dv, dropScale, tiles.keys + own, tiles.values + own, b, kv,
                       at.firstKey);
  if (call.sums)
    storeKeySums<kMmaWarps>(call, dk, dv, reinterpret_cast<float *>(tiles.ds), b, kv, at.place.key);
  clear(dk);
  clear(dv);
}

/// Computes all gradients. sums: attentionHeadSums floats for each slot.
template <typename T, typename Plan, Extra kExtra>
__global__ void __launch_bounds__(Plan::kThreads)
    jointGradientsOnTensorCores(PreparedBackward<T> call, float *sums, JointTurns turns,
                                Extents all) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  constexpr int D = Plan::kDim, kTiles = Plan::kTiles, kQueries = Plan::kQueries;
  constexpr bool kDocuments = kHasFirstKeys<kExtra>;
  __shared__ float numbers[2][2][kQueries]; // logSumExp2 and delta of two tiles of queries
  __shared__ float partials[Plan::kParts * 2][D];
  __shared__ int tickets[2]; // the item after that of a step's place
  const AttentionShape &shape = call.shape;
  MmaJointTiles<T, Plan> tiles(reinterpret_cast<T *>(dynamic));
  TileDrops<kMayDrop<kExtra>> drops(shape);
  MmaJointCopies<T, Plan> copies{call, all, tiles};
  float dk[kTiles][D / 8][4] = {}, dv[kTiles][D / 8][4] = {};

  turns.draw(tickets, 1);
  __syncthreads();
  Place<Plan, kDocuments> place(all, shape, turns, tickets[1]);
  if (place.isInside(all)) {
    copies.startKeys(place);
    copies.startQueries(place, 0);
    copies.startDouts(place, numbers[0]);
    if (place.endsKeys())
      turns.draw(tickets, 0);
  }
  commitCopies();
  bool startsKeys = true;
  for (int step = 0; place.isInside(all); ++step) {
    int buffer = step & 1;
    waitForCopies<0>();
    __syncthreads(); // all threads' copies have arrived, and they are done with the last step
    MmaJointStep<T, Plan, kExtra> now(place, all, shape, tiles.queries + buffer * Plan::kPassing,
                                      numbers[buffer][0], sums);
    bool endsKeys = place.endsKeys();
    Place<Plan, kDocuments> next = endsKeys
                                       ? Place<Plan, kDocuments>(all, shape, turns, tickets[buffer])
                                       : place.next(all, shape);
    bool more = next.isInside(all);
    if (more) {
      copies.startQueries(next, 1 - buffer);
      if (next.endsKeys())
        turns.draw(tickets, step + 1);
    }
    commitCopies();
    if (place.hasQueries()) {
      drops.atHead(place.batch, now.h);
      T *ownScores = tiles.ds + (now.firstKey - place.key) * kMmaPitch<Plan::kPart>;
#pragma unroll
      for (int part = 0; part < Plan::kParts; ++part) {
        uint32_t ds[Plan::kPart / 16][kTiles][4];
        attendPart(ds, shape, now, tiles, drops, dk, dv, part * Plan::kPart);
        if (part == 0)
          turns.take(place, startsKeys, now.first, all);
        else
          __syncthreads(); // all threads are done with dS of the last part
        storeScoreGradients<Plan>(ownScores, ds);
        __syncthreads(); // dS of all keys, and the turn
        if (more && part == Plan::kParts - 1)
          copies.startDouts(next, numbers[1 - buffer]);
        PartTerms<T, Plan> dq;
        dq.multiply(tiles.ds, tiles.keys);
        addPart(call, now, dq, partials, part);
      }
    } else if (more) {
      copies.startDouts(next, numbers[1 - buffer]);
    }
    if (now.last && place.hasQueries() && call.sums) { // for all of the block
      __syncthreads();
      // With heads of 128, half of the threads store what the others do.
      storePartialSums<D, Plan::kParts * 2, Plan::kPart / 2>(
          call.sums.data + int64_t(now.h) * D, call.sums.columns, partials[0], place.batch,
          place.query, all.queries, D);
    }
    if (endsKeys) {
      __syncthreads(); // all threads are done with the keys, and with dS
      turns.end(place, all);
      finishKeys(call, now, tiles, drops.scale, dk, dv);
      if (place.hasLastKeys(all))
        clearUnseen(call, place);
      __syncthreads(); // all threads have stored what passes through their rows
      if (more)
        copies.startKeys(next);
    }
    commitCopies();
    place = next;
    startsKeys = endsKeys;
  }
}

} // namespace

template <typename T>
bool attentionBackwardMmaJoint(const Stream &stream, const MmaBackward<T> &operands, float *sums,
                               int64_t slots, int64_t blocks) {
  const AttentionShape &shape = operands.shape;
  AttentionWork work = attentionWork(shape, kDTypeOf<T>);
  PreparedBackward<T> call(operands);
  if (!isJointAttention(work) || shape.blocks || call.bias.data.data || !call.dqPacks)
    return false;
  auto turns = beginTurns<kMmaThreads / 2>(stream, work, sums, slots);
  prepareBackward(stream, call);
  auto withPlan = [&](auto plan) {
    using Plan = decltype(plan);
    Extents all(shape, plan);
    int64_t items = attentionKeyHeads(work) * all.keyTiles;
    withExtra<false>(shape, /*bias=*/false, [&](auto extra) {
      PARTITA_RT_LAUNCH((jointGradientsOnTensorCores<T, Plan, extra()>),
                        gridOf(least(blocks, items)), Plan::kThreads, Plan::kBytes, stream, call,
                        sums, turns, all);
    });
  };
  if (shape.headDim == 64)
    withPlan(MmaJointPlan<64>());
  else
    withPlan(MmaJointPlan<128>());
  return true;
}

template bool attentionBackwardMmaJoint(const Stream &, const MmaBackward<Half> &, float *, int64_t,
                                        int64_t);
template bool attentionBackwardMmaJoint(const Stream &, const MmaBackward<BFloat16> &, float *,
                                        int64_t, int64_t);

} // namespace partita_rt::cuda
