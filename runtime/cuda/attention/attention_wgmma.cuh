// Attention of 16-bit heads with Hopper's warp-group matmuls: supported calls, tiles in shared
// memory. The forward and backward passes are in attention_wgmma_*.cu, modeled on FlashAttention-3
// (Shah et al., arXiv 2407.08608).
//
// A tile of [rows, D] is D / 64 consecutive panels of wgmma.cuh.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_CUH

#include "cuda/attention/attention_mma_drops.cuh"
#include "cuda/attention/bulk_copy.cuh"
#include "cuda/attention/wgmma.cuh"
#include "cuda/cuda.h"

namespace partita_rt::cuda {

/// Which calls that are onTensorCores, without a bias (these kernels take none), have warp-group
/// matmuls: those without a layout of blocks whose heads, of keys and of values, have 64 or 128
/// elements in aligned packs, on GPUs of compute capability 9 that the program has code for. heads:
/// all that the call reads and writes.
template <typename... Heads> bool onWarpGroups(const AttentionShape &shape, const Heads &...heads) {
#if defined(PARTITA_RT_WGMMA)
  if (shape.blocks || shape.headDim != shape.valueDim ||
      (shape.headDim != 64 && shape.headDim != 128) || !(inPacks(heads) && ...))
    return false;
  int device = 0, major = 0;
  checkCuda(cudaGetDevice(&device), "cudaGetDevice");
  checkCuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
            "cudaDeviceGetAttribute");
  return major == 9;
#else
  return false;
#endif
}

#if defined(PARTITA_RT_WGMMA)

/// Threads of a warp group, and rows of its matmuls.
constexpr int kGroupThreads = 128, kGroupRows = 64;

/// The shape of a block for heads of kDim elements: warp groups, each with 64 rows of its own;
/// streamed rows per step; and blocks per multiprocessor, which sets the registers and shared
/// memory of each.
template <int kDim_, int kGroups_, int kPassing_, int kBlocks_> struct GroupPlan {
  static constexpr int kDim = kDim_, kGroups = kGroups_, kPassing = kPassing_, kBlocks = kBlocks_;
  static constexpr int kThreads = kGroups * kGroupThreads, kOwn = kGroups * kGroupRows;
};

/// The plan of a kernel: drawing dropout's numbers takes registers, so that one block fewer than
/// three or four runs.
template <typename Plan, Extra kExtra>
using PlanFor = GroupPlan<Plan::kDim, Plan::kGroups, Plan::kPassing,
                          Plan::kBlocks - (kExtra == Extra::Dropout && Plan::kBlocks > 2)>;

/// Padding to align tiles to multiples of 1,024: dynamic shared memory may begin anywhere.
constexpr int kBlockBytes = 1024;
template <typename T> __device__ inline T *tilesIn(unsigned char *dynamic) {
  uint32_t beyond = sharedAddress(dynamic) % kBlockBytes;
  return reinterpret_cast<T *>(dynamic + (kBlockBytes - beyond) % kBlockBytes);
}

/// Returns the position of a pack's first element in a tile.
template <int kRows> __device__ inline int offsetOf(int row, int pack) {
  return (pack / 8 * kRows + row) * kPanel + (pack % 8 ^ row % 8) * kPack;
}

/// c = A times the transposed tile b: A is 64 rows of a tile of kRowsA.
template <typename T, int kRowsA, int D, int kColumns>
__device__ inline void matmulByRows(float (&c)[kColumns][4], uint32_t a, uint32_t b) {
  uint64_t left = operandAt(a), right = operandAt(b);
#pragma unroll
  for (int d = 0; d < D; d += 16) {
    int panel = d / kPanel, inRow = d % kPanel * 2;
    multiplyGroup<T, false>(c, behind(left, panel * kRowsA * 128 + inRow),
                            behind(right, panel * kColumns * 8 * 128 + inRow), d > 0);
  }
}
/// c += W times the tile b of kRows rows: W has as many columns, in registers.
template <typename T, int kRows, int kColumns>
__device__ inline void addMatmul(float (&c)[kColumns][4], const uint32_t (&w)[kRows / 16][4],
                                 uint32_t b) {
  uint64_t right = operandAt(b, kRows * 128);
#pragma unroll
  for (int row = 0; row < kRows; row += 16)
    multiplyGroup<T, true>(c, w[row / 16], behind(right, row * 128), true);
}

/// Rounds C to an A, 0 where it is marked.
template <typename T, bool kMarked = false, int kColumns>
__device__ inline void roundTo(uint32_t (&a)[kColumns / 2][4], const float (&c)[kColumns][4]) {
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      a[j / 2][j % 2 * 2 + half] =
          roundPair<T>(kept<kMarked>(c[j][2 * half]), kept<kMarked>(c[j][2 * half + 1]));
}

/// Writes a warp's 16 rows of C, rounded to T, to a head. They pass through the warp's own rows of
/// a tile of kRows, from `row` on; first: the first row in the head, which has `count` rows.
template <int kRows, int D, typename T>
__device__ void storePanels(const HeadRows<T> &head, const float (&sums)[D / 8][4], T *tile,
                            int row, int first, int count) {
  int lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int j = 0; j < D / 8; j += 2) {
    uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = roundPair<T>(sums[j + i / 2][i % 2 * 2], sums[j + i / 2][i % 2 * 2 + 1]);
    storeMatrices(tile + offsetOf<kRows>(row + lane % 16, j + lane / 16), pairs);
  }
  __syncwarp();
  constexpr int kPacks = D / kPack, kStep = kWarp / kPacks; // rows at a time
  int at = lane / kPacks, pack = lane % kPacks, rest = count - first - at;
  T *to = head.row(first + at) + pack * kPack;
  int64_t step = kStep * head.stride;
#pragma unroll
  for (int i = 0; i < 16; i += kStep, to += step)
    if (i < rest)
      *reinterpret_cast<uint4 *>(to) =
          *reinterpret_cast<const uint4 *>(tile + offsetOf<kRows>(row + at + i, pack));
}

/// The operands of a backward pass. Operands: MmaBackward.
struct BackwardMaps {
  CUtensorMap q, k, v, dout, out;
  template <typename Operands> explicit BackwardMaps(const Operands &call) {
    const AttentionShape &shape = call.shape;
    TensorSize queries{shape.sequence, shape.heads, shape.batch};
    TensorSize keys{shape.keySequence, shape.heads / shape.groups, shape.batch};
    q = tileMap(call.q, shape.headDim, queries);
    k = tileMap(call.k, shape.headDim, keys);
    v = tileMap(call.v, shape.headDim, keys);
    dout = tileMap(call.dout, shape.headDim, queries);
    out = tileMap(call.out, shape.headDim, queries);
  }
};

/// Returns the number of the thread's warp group, in the same register of all lanes.
__device__ inline int groupOfThread() {
  return __shfl_sync(kAllLanes, int(threadIdx.x) / kGroupThreads, 0);
}

#endif

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_WGMMA_CUH
