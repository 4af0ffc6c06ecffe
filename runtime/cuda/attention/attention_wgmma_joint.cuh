// Tiles of attention's joint backward pass by warp groups (attention_wgmma_joint_backward.cu): where they lie in
// shared memory, and their copies.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_JOINT_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_JOINT_CUH

#include "cuda/attention/attention_joint.cuh"
#include "cuda/attention/attention_wgmma.cuh"

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

/// One thread takes turns, another one starts copies.
template <bool kTurns> using GroupTurns = Turns<kTurns, kGroupThreads>;

/// Shared memory.
template <typename T, typename Plan> struct JointTiles {
  T *keys, *values, *queries, *douts, *outs, *ds;
  __device__ explicit JointTiles(T *at)
      : keys(at), values(keys + 2 * Plan::kKeyTile), queries(values + 2 * Plan::kKeyTile),
        douts(queries + 2 * Plan::kQueryTile), outs(douts + 2 * Plan::kQueryTile),
        ds(outs + Plan::kQueryTile) {}
};

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
