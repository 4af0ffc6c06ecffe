// Attention forward on tensor cores, for 16-bit heads (FlashAttention-2: Dao, arXiv 2307.08691).
// Formulas and shapes as in attention_forward.cu.
//
// A block has 128 queries, 32 per warp: a fragment of K or V that a warp reads from shared memory
// is multiplied twice, which mma.sync needs on sm_90 to avoid waiting for shared memory. Keys come
// 64 at a time. V is copied during Q K^T, the next K during the softmax and P V. Scores and
// probabilities stay in registers: a lane's elements of Q K^T are its elements of P in P V. P is
// rounded to T for P V, its sum is not: out differs from the float kernel's by at most one rounding
// of every probability, and the result's own. With a layout, tiles of keys of which the block's queries compute
// none are not copied, and a warp passes over those of which its own compute none.
//
// A step of attention whose keys come in parts (kStep) has float O, and goes on from m = logSumExp, l = 1 and the
// normalized O.

#include "cuda/attention/attention_mma_bias.cuh"
#include "cuda/attention/attention_mma_drops.cuh"

namespace partita_rt::cuda {

namespace {

constexpr int kQueriesOfWarp = 32, kQueries = kMmaWarps * kQueriesOfWarp, kKeys = 64;
constexpr int kTilesOfWarp = kQueriesOfWarp / 16;

template <typename T, bool kStep> struct Forward {
  HeadsOf<ResultOf<T, kStep>> out;
  float *logSumExp;
  HeadsOf<const T> q, k, v;
  AttentionShape shape;
  Bias<T> bias;
  bool qPacks, kPacks, vPacks, outPacks;
  bool continues; ///< of a step: from what out and logSumExp hold
};

template <typename T, int D, Extra kExtra, bool kStep>
__global__ void __launch_bounds__(kMmaThreads) forwardOnTensorCores(Forward<T, kStep> call) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ float bases[kMayBias<kExtra> ? kQueries : 1];
  const AttentionShape &shape = call.shape;
  T *queries = reinterpret_cast<T *>(dynamic), *keys = queries + kQueries * kMmaPitch<D>;
  T *values = keys + kKeys * kMmaPitch<D>;
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  int64_t h = blockIdx.y, b = blockIdx.z, kv = h / shape.groups;
  Sight<int, kHasFirstKeys<kExtra>, kStep> sight(shape, b);
  TileDrops<kMayDrop<kExtra>, kExtra == Extra::All> drops(shape);
  drops.atHead(b, h);
  TileBias<kMayBias<kExtra>, T> bias(call.bias, shape.scale);
  bias.atHead(b, h);
  int query = int(gridDim.x - 1 - blockIdx.x) * kQueries;
  constexpr bool kBlocks = kHasBlocks<kExtra>;
  HeadBlocks blocks(shape, h);
  KeyTiles<kBlocks, kKeys> tiles(blocks, sight, query, kQueries);
  float ofHidden = ofHiddenQuery(bias, shape);
  bool none = tiles.begin >= tiles.end && ofHidden == 0.0f; // for all of the block
  if (kStep && call.continues && none)
    return;
  HeadRows<const T> keyRows = headOf(call.k, b, kv), valueRows = headOf(call.v, b, kv);
  copyTile<kQueries, D>(queries, headOf(call.q, b, h), query, sight.queries, int(shape.headDim),
                        call.qPacks);
  copyTile<kKeys, D>(keys, keyRows, tiles.begin, sight.keys, int(shape.headDim), call.kPacks);
  commitCopies();

  int first = query + warp * kQueriesOfWarp;
  const float *ownBases =
      bias.template keepBases<kStep>(bases, shape, blocks, b, h, first, first - query);
  T *ownQueries = queries + warp * kQueriesOfWarp * kMmaPitch<D>;
  int warpLast = min(first + kQueriesOfWarp, sight.queries) - 1;
  float out[kTilesOfWarp][D / 8][4] = {};
  Softmax<kTilesOfWarp> softmax;
  float *logSumExp =
      call.logSumExp ? call.logSumExp + (b * shape.heads + h) * queryPitch(shape) : nullptr;
  if constexpr (kStep)
    if (call.continues)
      loadState(out, softmax, headOf(call.out, b, h), logSumExp, first, sight.queries,
                int(shape.valueDim), drops.scale == 0.0f ? 0.0f : 1.0f / drops.scale);
  for (int key = tiles.begin, after; key < tiles.end; key = after) {
    after = tiles.after(key);
    waitForCopies<0>();
    __syncthreads(); // the keys have arrived, and all threads are done with the last values
    copyTile<kKeys, D>(values, valueRows, key, sight.keys, int(shape.valueDim), call.vPacks);
    commitCopies();
    TileBits<kBlocks, kKeys> bits(blocks, /*transposed=*/false, sight.queryNumber + first,
                                  sight.queryNumber + warpLast, sight.keyNumber + key);
    bool some = bits.some() && sight.meets(first, warpLast, key, key + kKeys);
    float scores[kTilesOfWarp][kKeys / 8][4] = {};
    if (some) // for all lanes of the warp
      multiplyByRows<kTilesOfWarp, kKeys, D>(scores, ownQueries + laneOfA<D>(lane),
                                             keys + laneOfRowsB<D>(lane));
    waitForCopies<0>();
    __syncthreads(); // the values have arrived, and all threads are done with the keys
    if (after < tiles.end)
      copyTile<kKeys, D>(keys, keyRows, after, sight.keys, int(shape.headDim), call.kPacks);
    commitCopies();
    if (!some)
      continue;
    maskQueries(scores, bias, ownBases, sight, bits, first, warpLast, key);
    float correction[kTilesOfWarp][2];
    softmax.weigh(scores, correction, bias.factor);
    dropOfQueries(scores, drops, first + lane / 4, key);
    correct(out, correction);
    addWeighted<kTilesOfWarp, kKeys, D>(out, scores, values + laneOfA<D>(lane));
  }

  waitForCopies<0>(); // of queries, if there was no key
  __syncthreads();
  normalize(out, softmax, logSumExp, first, sight.queries, drops.scale, ofHidden);
  if constexpr (kStep)
    storeFloatsOfC(headOf(call.out, b, h), out, first, sight.queries, int(shape.valueDim),
                   /*adds=*/false);
  else
    storeRowsOfC<kTilesOfWarp, D>(headOf(call.out, b, h), out, ownQueries, first, sight.queries,
                                  int(shape.valueDim), call.outPacks);
}

template <typename T, bool kStep>
void launchForward(const Stream &stream, const Forward<T, kStep> &call) {
  const AttentionShape &shape = call.shape;
  int64_t tiles = ceilDiv(shape.sequence, kQueries);
  if (tiles * shape.heads * shape.batch == 0)
    return;
  withMmaHead(shape, [&](auto head) {
    withExtra<true, kStep>(shape, call.bias.data.data != nullptr, [&](auto extra) {
      constexpr int D = head();
      PARTITA_RT_LAUNCH((forwardOnTensorCores<T, D, extra(), kStep>),
                        attentionGrid(tiles, shape.heads, shape.batch), kMmaThreads,
                        (mmaTileBytes<D, kQueries + 2 * kKeys>()), stream, call);
    });
  });
}

} // namespace

template <typename T>
void attentionForwardMma(const Stream &stream, const HeadsOf<T> &out, float *logSumExp,
                         const HeadsOf<const T> &q, const HeadsOf<const T> &k,
                         const HeadsOf<const T> &v, const AttentionShape &shape,
                         const ScoresOf<const T> &bias) {
  launchForward(stream,
                Forward<T, false>{out, logSumExp, q, k, v, shape, bias, inPacks(q), inPacks(k),
                                  inPacks(v), inPacks(out), /*continues=*/false});
}

template <typename T>
void attentionStepMma(const Stream &stream, const Heads &out, float *logSumExp,
                      const HeadsOf<const T> &q, const HeadsOf<const T> &k,
                      const HeadsOf<const T> &v, const AttentionShape &shape,
                      const ScoresOf<const T> &bias, bool continues) {
  launchForward(stream, Forward<T, true>{out, logSumExp, q, k, v, shape, bias, inPacks(q),
                                         inPacks(k), inPacks(v), /*outPacks=*/false, continues});
}

#define ATTENTION_FORWARD_MMA(T)                                                                   \
  template void attentionForwardMma(const Stream &, const HeadsOf<T> &, float *,                   \
                                    const HeadsOf<const T> &, const HeadsOf<const T> &,            \
                                    const HeadsOf<const T> &, const AttentionShape &,              \
                                    const ScoresOf<const T> &);                                    \
  template void attentionStepMma(const Stream &, const Heads &, float *, const HeadsOf<const T> &, \
                                 const HeadsOf<const T> &, const HeadsOf<const T> &,               \
                                 const AttentionShape &, const ScoresOf<const T> &, bool);
ATTENTION_FORWARD_MMA(Half)
ATTENTION_FORWARD_MMA(BFloat16)
#undef ATTENTION_FORWARD_MMA

} // namespace partita_rt::cuda
