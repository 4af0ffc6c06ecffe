// The max of |x| of a block of consecutive elements, whose scale it decides (int8_blocks.h, int4_chunks.h). Lanes of a warp share
// a block: as many as it has packs, a power of two, each of which reads neighbouring packs.

#ifndef PARTITA_RT_CUDA_KERNELS_BLOCK_MAX_CUH
#define PARTITA_RT_CUDA_KERNELS_BLOCK_MAX_CUH

#include "cuda/kernels/device.cuh"
#include "partita_rt/cuda/elementwise.cuh"

namespace partita_rt::cuda {

/// The lanes that share a block.
inline int lanesOfBlock(int64_t block) {
  int lanes = 1;
  while (lanes < kWarp && int64_t(lanes) * kPack < block)
    lanes *= 2;
  return lanes;
}

/// The max over n elements, of which these lanes each read packs, as bits: those of positive floats are in their order,
/// infinity and NaN after all others. All lanes call it.
template <typename X>
__device__ inline unsigned maxBits(const X *x, int64_t n, int lane, int lanes) {
  unsigned most = 0;
  for (int64_t first = lane * kPack; first < n; first += int64_t(lanes) * kPack) {
    float values[kPack];
    load(values, x + first, least(n - first, kPack));
#pragma unroll
    for (float each : values) {
      unsigned bits = half::bitsOf(each) & 0x7fffffffu;
      most = bits > most ? bits : most;
    }
  }
  for (int with = lanes / 2; with > 0; with /= 2) {
    unsigned other = __shfl_xor_sync(kAllLanes, most, with);
    most = other > most ? other : most;
  }
  return most;
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_KERNELS_BLOCK_MAX_CUH
