// Sizes, in floats, of workspaces that programs give to kernels. The compiler plans them in the
// arena, and the kernels use all of them. The compiler includes this header, so it includes no
// other header of the runtime.

#ifndef PARTITA_RT_WORKSPACES_H
#define PARTITA_RT_WORKSPACES_H

#include <cstdint>

namespace partita_rt {

/// Tokens that a classifier's loss takes at once on the CPU, at most: their statistics are on the stack.
constexpr int64_t kMostClassifierRows = 4096;

/// The CPU's attention pads a head's rows to a multiple of this many elements.
constexpr int64_t kHeadPad = 16;

/// What determines the workspace of attention's backward pass.
struct AttentionWork {
  int64_t queries;  ///< batch * heads * sequence
  int64_t sequence; ///< of queries
  int64_t headDim;  ///< of q and k
  int64_t groups;   ///< query heads per key/value head
  bool isFloat;     ///< else heads are stored in 16 bits
  bool plain;       ///< no bias, no layout of blocks, and heads of v as wide as those of q
};

/// Returns the CPU's workspace: delta of each query, then, for 16-bit heads, the sums of dq of the
/// heads that share keys, in padded rows.
constexpr int64_t attentionWorkspaceOnCpu(const AttentionWork &work) {
  int64_t row = (work.headDim + kHeadPad - 1) / kHeadPad * kHeadPad;
  return work.queries + (work.isFloat ? 0 : work.groups * work.sequence * row);
}

/// Returns the CPU's workspace of one step of attention's backward pass: delta of each query (batch * heads *
/// sequence).
constexpr int64_t attentionStepWorkspaceOnCpu(int64_t queries) { return queries; }

namespace cuda {
/// What launches are sized for: an H100's or H200's.
constexpr int kMultiprocessors = 132;
} // namespace cuda

/// Returns the GPU's workspace of one step of attention's backward pass, the same for all types: delta and
/// the base of each query (batch * heads * sequence).
constexpr int64_t attentionStepWorkspaceOnCuda(int64_t queries) { return 2 * queries; }

/// The queries of a tile of a GPU's backward pass by heads (attention_wgmma_heads_backward.cu).
constexpr int64_t attentionHeadQueries(int64_t headDim) { return headDim == 64 ? 128 : 64; }
/// Its sums of dq of a block.
constexpr int64_t attentionHeadSums(const AttentionWork &work) {
  int64_t rows = attentionHeadQueries(work.headDim);
  return work.groups * ((work.sequence + rows - 1) / rows * rows) * work.headDim;
}
/// Returns the number of its blocks, at most: one per multiprocessor, which compute one head of keys
/// after another; a GPU with fewer multiprocessors has fewer, with the same results. None, and other
/// kernels take the call, if the multiprocessors would idle for more than a quarter of the time, for
/// lack of heads in the last round (predicted by bench/gpu/predict: this takes 0.64 of the others'
/// time), or if the sums of all blocks would not stay in 40 MiB of L2 cache.
constexpr int64_t attentionHeadBlocks(const AttentionWork &work) {
  constexpr int64_t kMost = cuda::kMultiprocessors, kCache = int64_t(40) << 20;
  bool numbered = work.queries < int64_t(1) << 31; // by 32 bits
  if (work.isFloat || !work.plain || (work.headDim != 64 && work.headDim != 128) || !numbered ||
      work.queries == 0)
    return 0;
  int64_t heads = work.queries / work.sequence / work.groups, rounds = (heads + kMost - 1) / kMost;
  int64_t blocks = heads < kMost ? heads : kMost;
  bool busy = 4 * heads >= 3 * rounds * kMost;
  return busy && blocks * attentionHeadSums(work) * 4 <= kCache ? blocks : 0;
}

/// Where they begin in the workspace: at a multiple of 16 bytes.
constexpr int64_t attentionHeadSumsAt(int64_t queries) {
  return (attentionStepWorkspaceOnCuda(queries) + 3) / 4 * 4;
}

/// Returns the GPU's workspace: that of a step, and the sums of dq of all blocks.
constexpr int64_t attentionWorkspaceOnCuda(const AttentionWork &work) {
  int64_t blocks = attentionHeadBlocks(work);
  return blocks == 0 ? attentionStepWorkspaceOnCuda(work.queries)
                     : attentionHeadSumsAt(work.queries) + blocks * attentionHeadSums(work);
}

} // namespace partita_rt

#endif // PARTITA_RT_WORKSPACES_H
