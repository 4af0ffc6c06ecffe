// What all forms of attention backward with warp-group matmuls do with a group's keys and a tile of
// queries: attention_wgmma_backward.cu and attention_wgmma_joint_backward.cu.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_BACKWARD_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_BACKWARD_CUH

#include "cuda/attention/attention_mma_backward.cuh"
#include "cuda/attention/attention_wgmma.cuh"

namespace partita_rt::cuda {

#if defined(PARTITA_RT_WGMMA)

/// Addresses in shared memory: of the group's rows of keys and values, of the tiles of queries and
/// their gradients.
struct GroupTiles {
  uint32_t keys, values, queries, douts;
};

/// Computes the probabilities of queries [query, last], and, rounded, the gradients of their scores;
/// adds to the group's dv, by a matmul that may still run on return. key: the first of the warp's
/// keys. numbers: logSumExp2 of the queries, then delta. factor: to scores in base 2. meanwhile: called while the
/// first two matmuls run.
template <typename T, int kKeys, int D, int kQueries, bool kDocuments, bool kDrops, bool kSometimes,
          typename Meanwhile>
__device__ inline void
attendByKeys(uint32_t (&roundedDs)[kQueries / 16][4], float (&dv)[1][D / 8][4],
             const GroupTiles &tiles, const Sight<int, kDocuments> &sight,
             const TileDrops<kDrops, kSometimes> &drops, int query, int last, int key,
             const float *numbers, float factor, const Meanwhile &meanwhile) {
  float p[1][kQueries / 8][4], ds[1][kQueries / 8][4];
  uint32_t roundedP[kQueries / 16][4];
  beginMatmuls();
  matmulByRows<T, kKeys, D>(p[0], tiles.keys, tiles.queries);
  commitMatmuls();
  matmulByRows<T, kKeys, D>(ds[0], tiles.values, tiles.douts);
  commitMatmuls();
  meanwhile();
  waitForMatmuls<1>();
  pin(p[0]);
  if (sight.hides(query, last, key, key + 16))
    hideFromQueries<1, kQueries>(p, sight, query, key);
  weigh<1, kQueries>(p, numbers, factor);
  markDropped(p, drops, query, key);
  roundTo<T, kDrops>(roundedP, p[0]);
  pin(dv[0]);
  beginMatmuls();
  addMatmul<T, kQueries>(dv[0], roundedP, tiles.douts);
  commitMatmuls();
  waitForMatmuls<1>();
  pin(ds[0]);
  differentiate<kDrops>(ds, p, numbers + kQueries, drops.scale);
  roundTo<T>(roundedDs, ds[0]);
}

#endif

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_BACKWARD_CUH
