// Attention forward with warp-group matmuls, for 16-bit heads of 64 or 128 elements on sm_90.
// Formulas and roundings as in attention_mma_forward.cu.
//
// A block's warp groups have 64 queries each; keys come 128 at a time, with two buffers for K and
// two for V. A group issues the next scores, Q K^T, together with P V of the previous ones: the
// softmax of the former, in registers, overlaps the latter. P is a lane's elements of the scores,
// rounded: the left operand of P V.

#include "cuda/attention/attention_wgmma.cuh"

namespace partita_rt::cuda {

#if defined(PARTITA_RT_WGMMA)

namespace {

template <typename T> struct Forward {
  HeadsOf<T> out;
  float *logSumExp;
  HeadsOf<const T> q, k, v;
  AttentionShape shape;
};

struct ForwardMaps {
  CUtensorMap q, k, v;
};

/// The tiles of keys and values streamed past a tile of queries, with two buffers each.
template <typename T, typename Plan> class KeyTiles {
  static constexpr int D = Plan::kDim, kKeys = Plan::kPassing, kTile = kKeys * D;
  T *queries, *keys, *values;
  const ForwardMaps &maps;
  int kv, begin, tiles, step = 0;
  Arrivals keyArrivals, valueArrivals;

  /// Starts copying keys, the first ones with the queries.
  __device__ void copyKeys(int i, int query) {
    uint64_t *barrier = keyArrivals.of(i);
    announceBytes(barrier, (kTile + (i == 0 ? Plan::kOwn * D : 0)) * sizeof(T));
    if (i == 0)
      copyTile<Plan::kOwn, D>(queries, maps.q, query, int(blockIdx.y), int(blockIdx.z), barrier);
    copyTile<kKeys, D>(keys + i % 2 * kTile, maps.k, begin + i * kKeys, kv, int(blockIdx.z),
                       barrier);
  }
  __device__ void copyValues(int i) {
    uint64_t *barrier = valueArrivals.of(i);
    announceBytes(barrier, kTile * sizeof(T));
    copyTile<kKeys, D>(values + i % 2 * kTile, maps.v, begin + i * kKeys, kv, int(blockIdx.z),
                       barrier);
  }

public:
  /// Keys from `begin` on of head kv; `queries` has room for the tile of queries and both's buffers.
  __device__ KeyTiles(T *queries, uint64_t *barriers, const ForwardMaps &maps, int query, int kv,
                      int begin, int tiles)
      : queries(queries), keys(queries + Plan::kOwn * D), values(keys + 2 * kTile), maps(maps),
        kv(kv), begin(begin), tiles(tiles), keyArrivals(barriers),
        valueArrivals(barriers + Arrivals::kBuffers) {
    if (threadIdx.x == 0 && tiles > 0)
      copyKeys(0, query);
    __syncthreads(); // the barriers are made
  }
  /// Waits for the keys of the next tile and for the values of the one before, and starts the copies
  /// that follow them.
  __device__ void next() {
    if (step < tiles)
      keyArrivals.wait(step);
    if (step > 0)
      valueArrivals.wait(step - 1);
    __syncthreads(); // all threads are done with the previous ones
    if (threadIdx.x == 0) {
      if (step + 1 < tiles)
        copyKeys(step + 1, 0);
      if (step < tiles)
        copyValues(step);
    }
    ++step;
  }
  /// All threads of a block wait equally often, also for tiles that only other warp groups need.
  __device__ void finish() {
    while (step <= tiles)
      next();
  }
  __device__ uint32_t keysOf(int i) const { return sharedAddress(keys + i % 2 * kTile); }
  __device__ uint32_t valuesOf(int i) const { return sharedAddress(values + i % 2 * kTile); }
};

/// Computes out for a tile of queries (x) of a head (y).
template <typename T, typename Plan, Extra kExtra>
__global__ void __launch_bounds__(Plan::kThreads, Plan::kBlocks)
    forwardByGroups(Forward<T> call, const __grid_constant__ ForwardMaps maps) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ uint64_t barriers[2 * Arrivals::kBuffers]; // of keys, and of values
  constexpr int D = Plan::kDim, kQueries = Plan::kOwn, kKeys = Plan::kPassing;
  const AttentionShape &shape = call.shape;
  T *queries = tilesIn<T>(dynamic);
  int row = int(threadIdx.x) / kWarp * 16, group = groupOfThread(); // the warp's first in the tile
  int64_t h = blockIdx.y, b = blockIdx.z, kv = h / shape.groups;
  Sight<int, kHasFirstKeys<kExtra>> sight(shape, b);
  TileDrops<kExtra == Extra::Dropout> drops(shape);
  drops.atHead(b, h);
  int query = int(gridDim.x - 1 - blockIdx.x) * kQueries;
  int begin = sight.first(query) / kKeys * kKeys;
  auto tilesTo = [&](int lastQuery) {
    int end = sight.end(min(lastQuery, sight.queries - 1));
    return end > begin ? (end - begin + kKeys - 1) / kKeys : 0;
  };
  int tiles = tilesTo(query + kQueries - 1), own = tilesTo(query + (group + 1) * kGroupRows - 1);
  KeyTiles<T, Plan> passing(queries, barriers, maps, query, int(kv), begin, tiles);

  float out[1][D / 8][4] = {}, scores[1][kKeys / 8][4], correction[1][2];
  uint32_t weights[kKeys / 16][4];
  Softmax<1> softmax;
  int first = query + row, last = min(first + 16, sight.queries) - 1; // of the warp
  uint32_t ownQueries = sharedAddress(queries + group * kGroupRows * kPanel);
  auto score = [&](int i) {
    matmulByRows<T, kQueries, D>(scores[0], ownQueries, passing.keysOf(i));
    commitMatmuls();
  };
  auto add = [&](int i) {
    addMatmul<T, kKeys>(out[0], weights, passing.valuesOf(i));
    commitMatmuls();
  };
  auto weigh = [&](int i) {
    int key = begin + i * kKeys;
    if (sight.hides(first, last, key, key + kKeys))
      hideKeys<1, kKeys>(scores, sight, first + int(threadIdx.x) % kWarp / 4, key);
    softmax.weigh(scores, correction, shape.scale * kLog2E);
    dropOfQueries(scores, drops, first + int(threadIdx.x) % kWarp / 4, key);
  };
  if (own > 0) {
    passing.next();
    beginMatmuls();
    score(0);
    waitForMatmuls<0>();
    pin(scores[0]);
    weigh(0);
    roundTo<T>(weights, scores[0]);
  }
  for (int i = 1; i < own; ++i) {
    passing.next();
    pin(scores[0]);
    pin(out[0]);
    beginMatmuls();
    score(i);
    add(i - 1);
    waitForMatmuls<1>();
    pin(scores[0]);
    weigh(i);
    waitForMatmuls<0>();
    pin(out[0]);
    correct(out, correction);
    roundTo<T>(weights, scores[0]);
  }
  if (own > 0) {
    passing.next();
    pin(out[0]);
    beginMatmuls();
    add(own - 1);
    waitForMatmuls<0>();
    pin(out[0]);
  }
  passing.finish();
  float *logSumExp =
      call.logSumExp ? call.logSumExp + (b * shape.heads + h) * shape.sequence : nullptr;
  normalize(out, softmax, logSumExp, first, sight.queries, drops.scale);
  storePanels<kQueries, D>(headOf(call.out, b, h), out[0], queries, row, first, sight.queries);
}

template <typename T, typename Plan> void launch(const Stream &stream, const Forward<T> &call) {
  const AttentionShape &shape = call.shape;
  TensorSize keys{shape.keySequence, shape.heads / shape.groups, shape.batch};
  ForwardMaps maps{tileMap(call.q, shape.headDim, {shape.sequence, shape.heads, shape.batch}),
                   tileMap(call.k, shape.headDim, keys), tileMap(call.v, shape.headDim, keys)};
  constexpr int kBytes = (Plan::kOwn + 4 * Plan::kPassing) * Plan::kDim * 2 + kBlockBytes;
  withExtra<false>(shape, /*bias=*/false, [&](auto extra) {
    PARTITA_RT_LAUNCH((forwardByGroups<T, PlanFor<Plan, extra()>, extra()>),
                      attentionGrid(ceilDiv(shape.sequence, Plan::kOwn), shape.heads, shape.batch),
                      Plan::kThreads, kBytes, stream, call, maps);
  });
}

} // namespace

#endif

template <typename T>
bool attentionForwardWgmma(const Stream &stream, const HeadsOf<T> &out, float *logSumExp,
                           const HeadsOf<const T> &q, const HeadsOf<const T> &k,
                           const HeadsOf<const T> &v, const AttentionShape &shape) {
  if (!onWarpGroups(shape, out, q, k, v))
    return false;
#if defined(PARTITA_RT_WGMMA)
  Forward<T> call{out, logSumExp, q, k, v, shape};
  if (shape.sequence * shape.heads * shape.batch == 0)
    return true;
  if (shape.headDim == 64)
    launch<T, GroupPlan<64, 1, 128, 3>>(stream, call);
  else
    launch<T, GroupPlan<128, 2, 128, 1>>(stream, call);
#endif
  return true;
}

#define ATTENTION_FORWARD_WGMMA(T)                                                                 \
  template bool attentionForwardWgmma(const Stream &, const HeadsOf<T> &, float *,                 \
                                      const HeadsOf<const T> &, const HeadsOf<const T> &,          \
                                      const HeadsOf<const T> &, const AttentionShape &);
ATTENTION_FORWARD_WGMMA(Half)
ATTENTION_FORWARD_WGMMA(BFloat16)
#undef ATTENTION_FORWARD_WGMMA

} // namespace partita_rt::cuda
