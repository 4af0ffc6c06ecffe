// Hopper's bulk copies of tiles (TMA), and the barriers in shared memory that tell when they have arrived
// (mbarrier). One thread starts copies; no thread computes addresses or holds data. Without nvcc
// (launch.cuh), <without_nvcc/bulk_copy.h> has the instructions.
//
// Order: makeBarrier and fenceBarriers in one thread; a block barrier. Then, for each phase of a barrier:
// announceBytes and as many bytes of copyBox in one thread; waitForPhase in all threads that use them, with
// parities 0, 1, 0 and so on. A buffer may be copied to again when all threads have passed a block barrier
// behind its last use; threads that have stored to it call fenceForMatmuls before that.

#ifndef PARTITA_RT_CUDA_ATTENTION_BULK_COPY_CUH
#define PARTITA_RT_CUDA_ATTENTION_BULK_COPY_CUH

#include "cuda/attention/tile_maps.h"
#include "cuda/attention/wgmma.cuh"

#if !defined(__CUDACC__)
#include <without_nvcc/bulk_copy.h>
#endif

namespace partita_rt::cuda {

#if defined(__CUDACC__) && defined(PARTITA_RT_WGMMA)

__device__ inline void makeBarrier(uint64_t *barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(barrier)) : "memory");
}
/// Makes this thread's barriers visible to copies: CUTLASS has the first fence, NVIDIA's programming guide the
/// second.
__device__ inline void fenceBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  fenceForMatmuls();
}
__device__ inline void announceBytes(uint64_t *barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ inline void waitForPhase(uint64_t *barrier, uint32_t parity) {
  uint32_t done;
  do
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.b32 %0, 1, 0, p;\n}\n"
                 : "=r"(done)
                 : "r"(sharedAddress(barrier)), "r"(parity)
                 : "memory");
  while (!done);
}
/// Starts copying the box of 64 x 64 elements at (column, row) of a head to an address that is a multiple
/// of 1,024, in the layout of a panel (wgmma.cuh). map: a kernel's __grid_constant__.
__device__ inline void copyBox(void *shared, const CUtensorMap *map, int column, int row, int head,
                               int batch, uint64_t *barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(sharedAddress(shared)),
               "l"(map), "r"(column), "r"(row), "r"(head), "r"(batch), "r"(sharedAddress(barrier))
               : "memory");
}

#elif !defined(__CUDACC__)

using without_nvcc::announceBytes;
using without_nvcc::copyBox;
using without_nvcc::fenceBarriers;
using without_nvcc::makeBarrier;
using without_nvcc::waitForPhase;

#endif

#if defined(PARTITA_RT_WGMMA)

/// Arrivals in two buffers, by turns: number i is in buffer i % 2. Every thread waits for each.
class Arrivals {
  uint64_t *barriers;

public:
  static constexpr int kBuffers = 2;
  /// barriers: one per buffer, in shared memory. A block barrier must follow.
  __device__ explicit Arrivals(uint64_t *barriers) : barriers(barriers) {
    if (threadIdx.x != 0)
      return;
    for (int i = 0; i < kBuffers; ++i)
      makeBarrier(barriers + i);
    fenceBarriers();
  }
  __device__ uint64_t *of(int i) const { return barriers + (i & 1); }
  __device__ void wait(int i) const { waitForPhase(of(i), i >> 1 & 1); }
};

/// Starts copying rows [row, row + kRows) of a head of D elements to a tile; one thread calls it.
template <int kRows, int D, typename T>
__device__ inline void copyTile(T *tile, const CUtensorMap &map, int row, int head, int batch,
                                uint64_t *barrier) {
#pragma unroll
  for (int panel = 0; panel < D / kBoxColumns; ++panel)
#pragma unroll
    for (int i = 0; i < kRows; i += kBoxRows)
      copyBox(tile + (panel * kRows + i) * kPanel, &map, panel * kBoxColumns, row + i, head, batch,
              barrier);
}

#endif

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_BULK_COPY_CUH
