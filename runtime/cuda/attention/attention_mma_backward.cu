// Attention backward on tensor cores, for 16-bit heads, by tiles: where attention_mma_joint_backward.cu does not
// compute a call. Formulas and shapes as in attention_backward.cu. Three launches, two of them with all matmuls, no atomics: delta per query, dK and dV by
// tiles of keys, dQ by tiles of queries; the last two both compute scores and dP.
//
// dK and dV: rows of fragments are keys, S^T = K Q^T and dP^T = V dO^T, so that P^T and dS^T are
// already the left operands of dV += P^T dO and dK += dS^T Q. All heads that share the keys follow
// one another. dQ: rows are queries, S = Q K^T, dP = dO V^T, dQ += dS K. A block's own two tiles
// stay in shared memory, its sums in registers. Of the streamed tiles, the one that is used last
// (Q, K) has two buffers and the other (dO, V) one. P and dS are each rounded to T once, for the
// matmuls that sum over them.

#include "cuda/attention/attention_mma_backward.cuh"
#include "cuda/attention/fused_attention.h"
#include "cuda/cuda.h"

namespace partita_rt::cuda {

namespace {

/// Fragments of 16 queries per warp, and keys at a time, for dQ.
constexpr int kQueryTiles = 2, kQueriesOfBlock = kMmaWarps * 16 * kQueryTiles;
template <int D> constexpr int kPassingKeys = D <= 64 ? 64 : 32;

/// Lanes per query of heads of at most D elements.
template <int D> constexpr int kPrepareLanes = D / kPack;
template <int D> constexpr int kPrepareRows = kMmaThreads / kPrepareLanes<D>;

template <typename T, int D, bool kStep>
__global__ void __launch_bounds__(kMmaThreads) prepareQueries(PreparedBackward<T, kStep> call) {
  const AttentionShape &shape = call.shape;
  int64_t h = blockIdx.y, b = blockIdx.z;
  int64_t query = int64_t(blockIdx.x) * kPrepareRows<D> + threadIdx.x / kPrepareLanes<D>;
  int64_t column = int64_t(threadIdx.x) % kPrepareLanes<D> * kPack;
  float out[kPack] = {}, dout[kPack] = {}, sum = 0.0f;
  if (query < shape.sequence && column < shape.valueDim) {
    load(out, headOf(call.out, b, h).row(query) + column, shape.valueDim - column);
    load(dout, headOf(call.dout, b, h).row(query) + column, shape.valueDim - column);
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    sum += out[i] * dout[i];
#pragma unroll
  for (int with = kPrepareLanes<D> / 2; with > 0; with /= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, with);
  if (query >= shape.sequence || column != 0)
    return;
  int64_t row = call.rowOf(b, h, query);
  call.delta[row] = sum;
  call.logSumExp2[row] = inBase2(call.logSumExp[row]);
}

/// The copies of the tiles of queries streamed past a tile of keys: Q has two buffers, dO one.
template <typename T, int D, bool kStep> struct QueryCopies {
  static constexpr int kQueries = kPassingQueries<D>, kTile = kQueries * kMmaPitch<D>;
  const PreparedBackward<T, kStep> &call;
  T *douts, *queries;
  __device__ void startQueries(const QueryTile &tile, int buffer) const {
    copyTile<kQueries, D>(queries + buffer * kTile, headOf(call.q, blockIdx.z, tile.head),
                          tile.query, int(call.shape.sequence), int(call.shape.headDim),
                          call.qPacks);
  }
  __device__ void startDouts(const QueryTile &tile) const {
    copyTile<kQueries, D>(douts, headOf(call.dout, blockIdx.z, tile.head), tile.query,
                          int(call.shape.sequence), int(call.shape.valueDim), call.doutPacks);
  }
};

/// The tiles of kQueries queries that pass a tile of keys, for all heads of a group. With layouts, those that
/// compute some of the keys. All lanes of a warp call first() and after() together.
template <bool kBlocks, int kQueries> class PassingTiles {
  const AttentionShape &shape;
  QueryTiles range;
  int headEnd, firstLine, lastLine, queryNumber; ///< lines of keys, in the full sequences

public:
  /// Of keys [key, key + count) of key head `kv`.
  template <bool kDocuments, bool kRuns>
  __device__ PassingTiles(const AttentionShape &shape, const Sight<int, kDocuments, kRuns> &sight,
                          int64_t kv, int key, int count)
      : shape(shape), range(sight, int(shape.groups), key, count, kQueries),
        headEnd(int((kv + 1) * shape.groups)), firstLine(sight.keyNumber + key),
        lastLine(sight.keyNumber + min(key + count, sight.keys) - 1),
        queryNumber(sight.queryNumber) {}
  /// The first one of heads from this one on, or one that does not exist.
  __device__ QueryTile first(int head) const { return computed({head, range.first}); }
  /// The next one, or one that does not exist.
  __device__ QueryTile after(const QueryTile &tile) const {
    return computed(tile.after(range, kQueries));
  }
  /// Does a tile with this number exist?
  __device__ bool has(int number, const QueryTile &tile) const {
    return kBlocks ? tile.head < headEnd : number < range.tiles;
  }

private:
  __device__ QueryTile computed(QueryTile tile) const {
    if constexpr (kBlocks) {
      for (; tile.head < headEnd; tile = {tile.head + 1, range.first}) {
        int query = nextTile<kQueries>(HeadBlocks(shape, tile.head), /*transposed=*/true, firstLine,
                                       lastLine, tile.query, range.end, queryNumber);
        if (query < range.end)
          return {tile.head, query};
      }
    }
    return tile;
  }
};

/// Computes dk and dv of a tile of keys (x) of a key head (y).
template <typename T, int D, Extra kExtra, bool kStep>
__global__ void __launch_bounds__(kMmaThreads)
    keyGradientsOnTensorCores(PreparedBackward<T, kStep> call) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  constexpr int kTiles = kKeyTiles<D>, kKeys = kKeysOfBlock<D>, kQueries = kPassingQueries<D>;
  constexpr int kRows = 16 * kTiles, kOwn = kRows * kMmaPitch<D>;
  constexpr int kPassing = kQueries * kMmaPitch<D>;
  constexpr bool kBias = kMayBias<kExtra>;
  __shared__ float numbers[2][2 + kBias][kQueries]; // of two tiles of queries
  const AttentionShape &shape = call.shape;
  T *keys = reinterpret_cast<T *>(dynamic), *values = keys + kKeys * kMmaPitch<D>;
  T *douts = values + kKeys * kMmaPitch<D>, *queries = douts + kPassing;
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  int64_t kv = blockIdx.y, b = blockIdx.z;
  Sight<int, kHasFirstKeys<kExtra>, kStep> sight(shape, b);
  constexpr bool kDrops = kMayDrop<kExtra>;
  TileDrops<kDrops, kExtra == Extra::All> drops(shape);
  TileBias<kBias, T> bias(call.bias, shape.scale);
  int key = int(blockIdx.x) * kKeys;
  constexpr bool kBlocks = kHasBlocks<kExtra>;
  PassingTiles<kBlocks, kQueries> tiles(shape, sight, kv, key, kKeys);
  QueryTile tile = tiles.first(int(kv * shape.groups)), next = tile;
  if (kStep && call.addToKeys && !tiles.has(0, tile)) // for all of the block
    return;
  QueryCopies<T, D, kStep> copies{call, douts, queries};
  QueryNumbers<kQueries, kBias> coming;
  startKeysAndValues<kKeys, D>(call, keys, values, b, kv, key);
  if (tiles.has(0, tile)) {
    copies.startQueries(tile, 0);
    copies.startDouts(tile);
    coming.load(call, b, tile);
    coming.keep(numbers[0]);
  }
  commitCopies();

  int first = key + warp * kRows; // the first of the warp's keys
  T *ownKeys = keys + warp * kOwn, *ownValues = values + warp * kOwn;
  float dk[kTiles][D / 8][4] = {}, dv[kTiles][D / 8][4] = {};
  for (int i = 0; tiles.has(i, tile); ++i, tile = next) {
    waitForCopies<0>();
    __syncthreads(); // the queries have arrived, and all threads are done with the previous ones
    next = tiles.after(tile);
    bool more = tiles.has(i + 1, next);
    if (more) {
      copies.startQueries(next, (i + 1) % 2);
      coming.load(call, b, next);
    }
    commitCopies();
    const T *passing = queries + i % 2 * kPassing;
    float p[kTiles][kQueries / 8][4] = {}, ds[kTiles][kQueries / 8][4] = {};
    int last = min(tile.query + kQueries, sight.queries) - 1;
    TileBits<kBlocks, kQueries> bits(
        HeadBlocks(shape, tile.head), /*transposed=*/true, sight.keyNumber + first,
        sight.keyNumber + min(first + kRows, sight.keys) - 1, sight.queryNumber + tile.query);
    bool some = bits.some() && sight.meets(tile.query, last, first, first + kRows);
    if (some) { // for all lanes of the warp
      multiplyByRows<kTiles, kQueries, D>(p, ownKeys + laneOfA<D>(lane),
                                          passing + laneOfRowsB<D>(lane));
      bias.atHead(b, tile.head);
      bias.addToKeys(p, sight, numbers[i % 2][1 + kBias], tile.query, first);
      if (sight.hides(tile.query, last, first, first + kRows))
        hideFromQueries<kTiles, kQueries>(p, sight, tile.query, first);
      bits.hide(p, sight.keyNumber + first + lane / 4);
      weigh<kTiles, kQueries>(p, numbers[i % 2][0], bias.factor);
      drops.atHead(b, tile.head);
      markDropped(p, drops, tile.query, first);
      addWeighted<kTiles, kQueries, D, kDrops>(dv, p, douts + laneOfA<D>(lane));
      multiplyByRows<kTiles, kQueries, D>(ds, ownValues + laneOfA<D>(lane),
                                          static_cast<const T *>(douts) + laneOfRowsB<D>(lane));
    }
    __syncthreads(); // all threads are done with dO
    if (more) {
      copies.startDouts(next);
      coming.keep(numbers[(i + 1) % 2]);
    }
    commitCopies();
    if (!some)
      continue;
    differentiate<kDrops>(ds, p, numbers[i % 2][1], drops.scale);
    addWeighted<kTiles, kQueries, D>(dk, ds, passing + laneOfA<D>(lane));
  }

  waitForCopies<0>(); // of keys and values, if there was no query
  __syncthreads();
  storeKeyGradients<D>(call, dk, dv, drops.scale, ownKeys, ownValues, b, kv, first);
  if (!kStep && call.sums) // for all of the block
    storeKeySums<kMmaWarps>(call, dk, dv, reinterpret_cast<float *>(douts), b, kv, key);
}

/// Turns dP into dS = P (dP - delta) where P = 2^(factor * score - shift): rows are queries. One by one,
/// since all of P beside dS would not fit into registers.
template <int kColumns>
__device__ inline void differentiateRows(float (&ds)[kQueryTiles][kColumns][4],
                                         const float (&scores)[kQueryTiles][kColumns][4],
                                         const float (&shift)[kQueryTiles][2],
                                         const float (&delta)[kQueryTiles][2], float factor) {
#pragma unroll
  for (int t = 0; t < kQueryTiles; ++t)
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float weight = powerOfTwo(fmaf(scores[t][j][e], factor, -shift[t][e / 2]));
        ds[t][j][e] = weight * (ds[t][j][e] - delta[t][e / 2]);
      }
}

/// logSumExp2 and delta of a lane's rows of C, from query `first` on.
template <bool kBias> struct RowNumbers {
  float shift[kQueryTiles][2], delta[kQueryTiles][2];

  template <typename T, bool kStep>
  __device__ RowNumbers(const PreparedBackward<T, kStep> &call, int64_t b, int64_t h, int first) {
    int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int t = 0; t < kQueryTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int at = first + 16 * t + 8 * half + lane / 4;
        bool inside = at < call.shape.sequence;
        int64_t row = inside ? call.rowOf(b, h, at) : 0;
        shift[t][half] = inside ? call.template shiftOf<kBias>(row) : -Largest::kNone;
        delta[t][half] = inside ? call.delta[row] : 0.0f;
      }
  }
};

/// Computes dq of a tile of queries (x) of a head (y).
template <typename T, int D, Extra kExtra, bool kStep>
__global__ void __launch_bounds__(kMmaThreads)
    queryGradientsOnTensorCores(PreparedBackward<T, kStep> call) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  constexpr int kKeys = kPassingKeys<D>, kOwn = 16 * kQueryTiles * kMmaPitch<D>;
  constexpr int kPassing = kKeys * kMmaPitch<D>;
  const AttentionShape &shape = call.shape;
  T *queries = reinterpret_cast<T *>(dynamic), *douts = queries + kMmaWarps * kOwn;
  T *values = douts + kMmaWarps * kOwn, *keys = values + kPassing;
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  int headDim = int(shape.headDim), valueDim = int(shape.valueDim);
  int64_t h = blockIdx.y, b = blockIdx.z, kv = h / shape.groups;
  Sight<int, kHasFirstKeys<kExtra>, kStep> sight(shape, b);
  TileDrops<kMayDrop<kExtra>, kExtra == Extra::All> drops(shape);
  drops.atHead(b, h);
  TileBias<kMayBias<kExtra>, T> bias(call.bias, shape.scale);
  bias.atHead(b, h);
  int query = int(gridDim.x - 1 - blockIdx.x) * kQueriesOfBlock;
  constexpr bool kBlocks = kHasBlocks<kExtra>;
  HeadBlocks blocks(shape, h);
  KeyTiles<kBlocks, kKeys> tiles(blocks, sight, query, kQueriesOfBlock);
  if (kStep && call.addToQueries && tiles.begin >= tiles.end) // for all of the block
    return;
  auto copyKeys = [&](int i, int key) {
    copyTile<kKeys, D>(keys + i % 2 * kPassing, headOf(call.k, b, kv), key, sight.keys, headDim,
                       call.kPacks);
  };
  auto copyValues = [&](int key) {
    copyTile<kKeys, D>(values, headOf(call.v, b, kv), key, sight.keys, valueDim, call.vPacks);
  };
  copyTile<kQueriesOfBlock, D>(queries, headOf(call.q, b, h), query, sight.queries, headDim,
                               call.qPacks);
  copyTile<kQueriesOfBlock, D>(douts, headOf(call.dout, b, h), query, sight.queries, valueDim,
                               call.doutPacks);
  if (tiles.begin < tiles.end) {
    copyKeys(0, tiles.begin);
    copyValues(tiles.begin);
  }
  commitCopies();

  T *ownQueries = queries + warp * kOwn, *ownDouts = douts + warp * kOwn;
  int first = query + warp * 16 * kQueryTiles;
  int warpLast = min(first + 16 * kQueryTiles, sight.queries) - 1;
  float dq[kQueryTiles][D / 8][4] = {};
  RowNumbers<kMayBias<kExtra>> numbers(call, b, h, first);
  for (int i = 0, key = tiles.begin, after; key < tiles.end; ++i, key = after) {
    after = tiles.after(key);
    waitForCopies<0>();
    __syncthreads(); // keys and values have arrived, and all threads are done with the last keys
    if (after < tiles.end)
      copyKeys(i + 1, after);
    commitCopies();
    const T *passing = keys + i % 2 * kPassing;
    float p[kQueryTiles][kKeys / 8][4] = {}, ds[kQueryTiles][kKeys / 8][4] = {};
    TileBits<kBlocks, kKeys> bits(blocks, /*transposed=*/false, sight.queryNumber + first,
                                  sight.queryNumber + warpLast, sight.keyNumber + key);
    bool some = bits.some() && sight.meets(first, warpLast, key, key + kKeys);
    if (some) { // for all lanes of the warp
      multiplyByRows<kQueryTiles, kKeys, D>(p, ownQueries + laneOfA<D>(lane),
                                            passing + laneOfRowsB<D>(lane));
      multiplyByRows<kQueryTiles, kKeys, D>(ds, ownDouts + laneOfA<D>(lane),
                                            static_cast<T *>(values) + laneOfRowsB<D>(lane));
    }
    __syncthreads(); // all threads are done with the values
    if (after < tiles.end)
      copyValues(after);
    commitCopies();
    if (!some)
      continue;
    maskQueries(p, bias, call.base + call.rowOf(b, h, first), sight, bits, first, warpLast, key);
    dropOfQueries(ds, drops, first + lane / 4, key, drops.scale);
    differentiateRows(ds, p, numbers.shift, numbers.delta, bias.factor);
    addWeighted<kQueryTiles, kKeys, D>(dq, ds, passing + laneOfA<D>(lane));
  }

  waitForCopies<0>(); // of queries, if there was no key
  __syncthreads();
  scaleBy(dq, shape.scale);
  if constexpr (kStep)
    storeFloatsOfC(headOf(call.dq, b, h), dq, first, sight.queries, headDim, call.addToQueries);
  else
    storeRowsOfC<kQueryTiles, D>(headOf(call.dq, b, h), dq, ownQueries, first, sight.queries,
                                 headDim, call.dqPacks);
  if (!kStep && call.sums) // for all of the block
    storeQuerySums<kMmaWarps>(call, dq, reinterpret_cast<float *>(values), query);
}

template <int D, Extra kExtra, typename T, bool kStep>
void launchGradients(const Stream &stream, const PreparedBackward<T, kStep> &call) {
  const AttentionShape &shape = call.shape;
  if (shape.keySequence > 0)
    PARTITA_RT_LAUNCH((keyGradientsOnTensorCores<T, D, kExtra, kStep>),
                      attentionGrid(ceilDiv(shape.keySequence, kKeysOfBlock<D>),
                                    shape.heads / shape.groups, shape.batch),
                      kMmaThreads,
                      (mmaTileBytes<D, 2 * kKeysOfBlock<D> + 3 * kPassingQueries<D>>()), stream,
                      call);
  if (shape.sequence > 0)
    PARTITA_RT_LAUNCH(
        (queryGradientsOnTensorCores<T, D, kExtra, kStep>),
        attentionGrid(ceilDiv(shape.sequence, kQueriesOfBlock), shape.heads, shape.batch),
        kMmaThreads, (mmaTileBytes<D, 2 * kQueriesOfBlock + 3 * kPassingKeys<D>>()), stream, call);
}

} // namespace

template <typename T, bool kStep>
void prepareBackward(const Stream &stream, const PreparedBackward<T, kStep> &call) {
  const AttentionShape &shape = call.shape;
  auto launch = [&](auto width) {
    constexpr int D = width();
    PARTITA_RT_LAUNCH(
        (prepareQueries<T, D, kStep>),
        attentionGrid(ceilDiv(shape.sequence, kPrepareRows<D>), shape.heads, shape.batch),
        kMmaThreads, 0, stream, call);
  };
  if (shape.sequence == 0)
    return;
  if (shape.valueDim <= 64)
    launch(std::integral_constant<int, 64>());
  else
    launch(std::integral_constant<int, 128>());
}

template <typename T, bool kStep>
static void backwardOnTensorCores(const Stream &stream, const MmaBackward<T, kStep> &operands,
                                  bool prepares) {
  const AttentionShape &shape = operands.shape;
  if (shape.batch * shape.heads == 0)
    return;
  PreparedBackward<T, kStep> call(operands);
  bool bias = call.bias.data.data;
  if (prepares && !bias)
    prepareBackward(stream, call);
  withMmaHead(shape, [&](auto head) {
    withExtra<true, kStep>(shape, bias,
                           [&](auto extra) { launchGradients<head(), extra()>(stream, call); });
  });
}

template <typename T>
void attentionBackwardMmaByTiles(const Stream &stream, const MmaBackward<T> &operands) {
  backwardOnTensorCores(stream, operands, /*prepares=*/true);
}

template <typename T>
void attentionBackwardMma(const Stream &stream, const MmaBackward<T> &operands) {
  AttentionWork work = attentionWork(operands.shape, kDTypeOf<T>);
  int64_t slots = attentionMmaSlots(work);
  if (attentionBy() != AttentionBy::Tiles && slots > 0 &&
      attentionBackwardMmaJoint(stream, operands,
                                operands.workspace + attentionHeadSumsAt(work.queries), slots,
                                2 * multiprocessors()))
    return;
  attentionBackwardMmaByTiles(stream, operands);
}

template <typename T>
void attentionStepBackwardMma(const Stream &stream, const MmaBackward<T, true> &operands,
                              bool prepares) {
  backwardOnTensorCores(stream, operands, prepares);
}

#define ATTENTION_BACKWARD_MMA(T)                                                                  \
  template void prepareBackward(const Stream &, const PreparedBackward<T> &);                      \
  template void attentionBackwardMma(const Stream &, const MmaBackward<T> &);                      \
  template void attentionBackwardMmaByTiles(const Stream &, const MmaBackward<T> &);               \
  template void attentionStepBackwardMma(const Stream &, const MmaBackward<T, true> &, bool);
ATTENTION_BACKWARD_MMA(Half)
ATTENTION_BACKWARD_MMA(BFloat16)
#undef ATTENTION_BACKWARD_MMA

} // namespace partita_rt::cuda
