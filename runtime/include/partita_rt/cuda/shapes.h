// The grid, the block and the scratch memory of a kernel's launch: functions of the operands'
// shapes alone, never of the device, so that every GPU computes the same sums in the same order.
// (Attention's joint backward pass has fewer blocks on smaller GPUs, with the same sums: workspaces.h.)
// Sizes are chosen for kMultiprocessors (workspaces.h). The compiler reads the scratch sizes for its
// ledger.

#ifndef PARTITA_RT_CUDA_SHAPES_H
#define PARTITA_RT_CUDA_SHAPES_H

#include "../host_device.h"
#include "../one_bit_shapes.h"
#include "../types.h"
#include "../workspaces.h"

namespace partita_rt::cuda {

/// Elements that a thread handles at once: 16 bytes of a 16-bit type, twice as many of float. The
/// same for all types, so that a kernel's order of additions does not depend on the storage type.
constexpr int kPack = 8;
/// Packs of a row that a thread keeps in registers.
constexpr int kHeldPacks = 4;
constexpr int kWarp = 32;
constexpr int kMostRowThreads = 512; ///< per row; leaves each thread 128 registers

PARTITA_RT_HOST_DEVICE constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
PARTITA_RT_HOST_DEVICE constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
PARTITA_RT_HOST_DEVICE constexpr int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
PARTITA_RT_HOST_DEVICE constexpr int64_t aligned(int64_t bytes) { return ceilDiv(bytes, 16) * 16; }

/// The threads per row, a multiple of a warp, and the rows per block.
struct RowShape {
  int threads, rows;
  bool held; ///< the row fits into its threads' registers
};

/// Gives a row that one warp can hold a single warp, so it needs no barrier.
constexpr RowShape rowShape(int64_t width, int held, int rowsOfWarps) {
  int64_t packs = ceilDiv(width, kPack), warps = ceilDiv(packs, held * kWarp);
  int threads = int(least(most(warps, 1) * kWarp, kMostRowThreads));
  return {threads, threads == kWarp ? rowsOfWarps : 1, packs <= int64_t(threads) * held};
}
constexpr RowShape forwardShape(int64_t width) { return rowShape(width, kHeldPacks, 4); }

/// The number of packs per thread in a norm's backward pass, which also keeps two sums per pack: 2,
/// or 3 if one warp can then hold the row.
constexpr int heldPacksBackward(int64_t width) {
  return ceilDiv(width, kPack * kWarp) == 3 ? 3 : 2;
}
constexpr int kRowsBackward = 8; ///< per block, if each row has one warp
constexpr RowShape backwardShape(int64_t width) {
  return rowShape(width, heldPacksBackward(width), kRowsBackward);
}

/// The blocks of a norm's backward pass, each of which computes one partial sum of every
/// parameter's gradient: as many as run at once, 512 threads per multiprocessor, so that few
/// partial sums remain to be added. columnSum's blocks compute the sums of a row too wide to be
/// held.
constexpr int64_t normBackwardBlocks(int64_t rows, int64_t width) {
  RowShape shape = backwardShape(width);
  int64_t resident = 512 / (shape.threads * shape.rows);
  return least(ceilDiv(rows, shape.rows), kMultiprocessors * most(resident, 1));
}

/// Column sums: a block handles 32 packs of columns and 8 rows at a time. Partial sums are added by
/// blocks of 4 packs, a cache line, and 64 partial sums at a time: there are few of them, and a
/// launch is bound by memory latency, not by bandwidth.
constexpr int kColumnPacks = 32, kColumnRows = 8;
constexpr int kPartPacks = 4, kPartRows = 64;
/// As many blocks as run at once, eight per multiprocessor, and not one more: a few blocks left over would
/// take as long as all others.
constexpr int64_t columnBlocks(int64_t rows, int64_t width) {
  int64_t across = most(1, ceilDiv(width, kColumnPacks * kPack));
  return most(1, least(ceilDiv(rows, kColumnRows * 8), 8 * kMultiprocessors / across));
}

constexpr int64_t columnSumScratch(int64_t rows, int64_t width) {
  return columnBlocks(rows, width) * width * 4;
}
/// Scratch of layerNormBackward and rmsNormBackward. `arrays` counts dweight, dbias and the sums of
/// dx up to the last one that is computed.
constexpr int64_t normBackwardScratch(int64_t rows, int64_t width, int64_t arrays) {
  bool held = backwardShape(width).held;
  int64_t parts = held ? normBackwardBlocks(rows, width) : columnBlocks(rows, width);
  return arrays * parts * width * 4;
}

/// The sums of rows that attentionBackward computes (RowSumsOf). Its kernels leave partial sums in scratch memory, float
/// [partials, columns]: columns are those of dq, of dk and of dv, one after another; partial i has the sums over
/// kAttentionSumRows queries, or keys, of one sequence, the n-th of sequence b if i = b * ceilDiv(positions,
/// kAttentionSumRows) + n. The members are those of AttentionShape.
constexpr int kAttentionSumRows = 64;
struct AttentionSums {
  int64_t batch, heads, sequence, keySequence, headDim, valueDim, groups;
  PARTITA_RT_HOST_DEVICE constexpr int64_t keyColumn() const { return heads * headDim; }
  PARTITA_RT_HOST_DEVICE constexpr int64_t valueColumn() const {
    return keyColumn() + heads / groups * headDim;
  }
  PARTITA_RT_HOST_DEVICE constexpr int64_t columns() const {
    return valueColumn() + heads / groups * valueDim;
  }
  /// positions: `sequence` or `keySequence`.
  PARTITA_RT_HOST_DEVICE constexpr int64_t partials(int64_t positions) const {
    return batch * ceilDiv(positions, kAttentionSumRows);
  }
  constexpr int64_t scratch() const {
    return most(partials(sequence), partials(keySequence)) * columns() * 4;
  }
};

/// Elements per block of squareSum, as on the CPU.
constexpr int64_t kSquareSumBlock = 4096;
/// Scratch of squareSum for n elements.
constexpr int64_t squareSumScratch(int64_t n) { return ceilDiv(n, kSquareSumBlock) * 8; }

/// Scratch of oneBitAllReduce: whether all scales are finite, and a partial sum per block of its tensors, which have so many in all.
constexpr int64_t kOneBitFlagBytes = 16;
constexpr int64_t signScaleBlocks(int64_t n) { return ceilDiv(n, kSignScaleBlock); }
constexpr int64_t oneBitSumScratch(int64_t blocks) { return kOneBitFlagBytes + blocks * 8; }

/// Scratch of an emitted kernel that adds up this many squares per element, for n elements.
constexpr int64_t updateSquaresScratch(int64_t n, int64_t sums) {
  return ceilDiv(n, kSquareSumBlock) * sums * 8;
}

/// Sums of rows by number (embeddingBackward, takeBackward): the rows that a block sorts, and the
/// rows per tile of sums, whose threads have a pack of columns each.
constexpr int64_t kSortBlock = 2048, kSumTile = 64;
constexpr int kSumThreads = 128;
/// Scratch of embeddingBackward for n ids, and of takeBackward for n ids in all its tables.
constexpr int64_t rowSumScratch(int64_t n, int64_t width) {
  return 4 * aligned(n * 4) + ceilDiv(n, kSortBlock) * 1024 + ceilDiv(n, kSumTile) * 2 * width * 4;
}

/// Memory of Matmuls (cuBLASLt's workspace), for each stream with matmuls.
constexpr int64_t kMatmulWorkspace = 32 << 20;

/// Memory of FusedAttention (cuDNN's workspace, which has gradients of scores), if it is used.
constexpr int64_t kAttentionWorkspace = 512 << 20;

/// Returns true for types that cuBLASLt multiplies directly: A and B of one type, C of that type or
/// float.
constexpr bool isDirect(DType a, DType b, DType c) {
  return a == b && (c == a || c == DType::Float32);
}
/// Scratch of gemm, gemmBias and gemmBatched, C[m, n] with a sum over k: nothing if isDirect, else
/// the operands (of one matmul of the batch) in float. A bias whose type is not C's adds a copy.
constexpr int64_t gemmScratch(DType a, DType b, DType c, int64_t m, int64_t n, int64_t k) {
  if (isDirect(a, b, c))
    return 0;
  return (a == DType::Float32 ? 0 : aligned(m * k * 4)) +
         (b == DType::Float32 ? 0 : aligned(k * n * 4)) +
         (c == DType::Float32 ? 0 : aligned(m * n * 4));
}
constexpr int64_t gemmBiasScratch(DType a, DType b, DType bias, DType c, int64_t m, int64_t n,
                                  int64_t k) {
  DType made = isDirect(a, b, c) ? c : DType::Float32;
  return gemmScratch(a, b, c, m, n, k) + (bias == made ? 0 : aligned(n * sizeOf(made)));
}
/// Scratch of gemmBiasGrad, which computes `sums` over k rows.
constexpr int64_t gemmBiasGradScratch(int64_t sums, int64_t k) {
  return most(columnSumScratch(k, sums), aligned(sums * 4));
}

/// The rows of a tile of quantizeTransposed, and the scratch that the sums of its columns take.
constexpr int kQuantizeTileRows = 128;
constexpr int64_t quantizeSumsScratch(int64_t rows, int64_t width) {
  return ceilDiv(rows, kQuantizeTileRows) * width * 4;
}

/// The compute capability that scaledGemm needs, times 10.
constexpr int kScaledGemmCapability = 89;

/// Elements between the rows of a classifier's logits, so that rows begin at 16-byte addresses.
constexpr int64_t classifierStride(int64_t vocabulary) { return ceilDiv(vocabulary, 8) * 8; }

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_SHAPES_H
