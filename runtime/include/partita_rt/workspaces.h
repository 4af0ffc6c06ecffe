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
  int64_t keySequence;
  int64_t headDim; ///< of q and k
  int64_t groups;  ///< query heads per key/value head
  bool isFloat;    ///< else heads are stored in 16 bits
  bool plain;      ///< no bias, no layout of blocks, and heads of v as wide as those of q
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

// A GPU's joint backward pass (attention_*_joint_backward.cu): all gradients in one launch, with sums of dq in
// the workspace.

/// Bytes of L2 cache in which the sums of dq should stay.
constexpr int64_t kAttentionCache = int64_t(40) << 20;
/// The keys of a tile, by warp groups and by mma.sync.
constexpr int64_t kAttentionTileKeys = 128;
constexpr int64_t attentionMmaTileKeys(int64_t headDim) { return headDim == 64 ? 128 : 64; }

/// The heads of keys, and their tiles of keys.
constexpr int64_t attentionKeyHeads(const AttentionWork &work) {
  return work.sequence == 0 ? 0 : work.queries / work.sequence / work.groups;
}
constexpr int64_t attentionKeyTiles(const AttentionWork &work) {
  return (work.keySequence + kAttentionTileKeys - 1) / kAttentionTileKeys;
}
/// The queries of a tile, by warp groups, and the tiles of a head; mma.sync has 64.
constexpr int64_t attentionTileQueries(int64_t headDim) { return headDim == 64 ? 128 : 64; }
constexpr int64_t attentionQueryTiles(const AttentionWork &work) {
  int64_t rows = attentionTileQueries(work.headDim);
  return (work.sequence + rows - 1) / rows;
}
/// Sums of dq of a head of keys.
constexpr int64_t attentionHeadSums(const AttentionWork &work) {
  return work.groups * attentionQueryTiles(work) * attentionTileQueries(work.headDim) *
         work.headDim;
}

/// Returns whether the joint backward pass can compute a call.
constexpr bool isJointAttention(const AttentionWork &work) {
  bool numbered = work.queries < int64_t(1) << 31 && // by 32 bits
                  attentionKeyHeads(work) * attentionKeyTiles(work) < int64_t(1) << 30;
  return !work.isFloat && work.plain && (work.headDim == 64 || work.headDim == 128) && numbered &&
         work.queries > 0 && work.keySequence > 0;
}
/// Returns the number of blocks by heads, at most: one per multiprocessor, which compute one head of
/// keys after another; a GPU with fewer multiprocessors has fewer, with the same results. 0 if the multiprocessors
/// would idle for more than an eighth of the time, for lack of heads in the last round (taking turns is 1.15 times
/// the work, predicted by bench/gpu/predict), or if the sums of all blocks would not stay in the cache.
constexpr int64_t attentionHeadBlocks(const AttentionWork &work) {
  constexpr int64_t kMost = cuda::kMultiprocessors;
  if (!isJointAttention(work))
    return 0;
  int64_t heads = attentionKeyHeads(work), rounds = (heads + kMost - 1) / kMost;
  int64_t blocks = heads < kMost ? heads : kMost;
  bool busy = 8 * heads >= 7 * rounds * kMost;
  return busy && blocks * attentionHeadSums(work) * 4 <= kAttentionCache ? blocks : 0;
}
/// Returns how many heads of keys have sums at once if blocks take turns: as many as the cache holds, but enough for
/// two tiles of keys per multiprocessor. With fewer, blocks wait for heads to complete. 0 by heads, and if all heads
/// have fewer tiles: then by tiles is faster (bench/gpu/turn_times.py: 0.3 to 0.7 of the multiprocessors would be busy).
constexpr int64_t attentionTurnSlots(const AttentionWork &work) {
  if (!isJointAttention(work) || attentionHeadBlocks(work) > 0)
    return 0;
  constexpr int64_t kTiles = 2 * cuda::kMultiprocessors;
  int64_t heads = attentionKeyHeads(work), tiles = attentionKeyTiles(work);
  if (heads * tiles < kTiles)
    return 0;
  int64_t cached = kAttentionCache / (4 * attentionHeadSums(work));
  int64_t needed = (kTiles + tiles - 1) / tiles, slots = cached > needed ? cached : needed;
  return slots < heads ? slots : heads;
}
/// Returns the heads of keys that have sums at once, by heads or by turns; 0 by tiles.
constexpr int64_t attentionJointSlots(const AttentionWork &work) {
  return attentionHeadBlocks(work) + attentionTurnSlots(work); // one of them is 0
}
/// Returns the slots with which mma.sync takes turns, those that warp groups have by heads or by turns; 0, by tiles, if
/// these heads have fewer than four of its tiles of keys for each multiprocessor. Where two blocks share one, they would
/// wait for a seventh to a half of the time (bench/gpu/turn_times.py --mma); two matmuls fewer save a quarter.
constexpr int64_t attentionMmaSlots(const AttentionWork &work) {
  int64_t rows = attentionMmaTileKeys(work.headDim), tiles = (work.keySequence + rows - 1) / rows;
  int64_t slots = attentionJointSlots(work);
  return slots * tiles >= 4 * cuda::kMultiprocessors ? slots : 0;
}
/// Returns the number of 32-bit counters by which they take turns (Turns in attention_joint.cuh): of all items, of
/// each slot, of each tile of queries of a slot. The smallest such tile has 64.
constexpr int64_t attentionTurnCounters(const AttentionWork &work, int64_t slots) {
  return 1 + slots * (1 + work.groups * ((work.sequence + 63) / 64));
}

/// Where the sums begin in the workspace: at a multiple of 16 bytes.
constexpr int64_t attentionHeadSumsAt(int64_t queries) {
  return (attentionStepWorkspaceOnCuda(queries) + 3) / 4 * 4;
}

/// Returns the GPU's workspace: that of a step, and what a joint backward pass needs. By heads too there are counters:
/// GPUs without warp groups take turns, with a slot where others have a block.
constexpr int64_t attentionWorkspaceOnCuda(const AttentionWork &work) {
  int64_t slots = attentionJointSlots(work);
  if (slots == 0)
    return attentionStepWorkspaceOnCuda(work.queries);
  return attentionHeadSumsAt(work.queries) + slots * attentionHeadSums(work) +
         attentionTurnCounters(work, slots);
}

} // namespace partita_rt

#endif // PARTITA_RT_WORKSPACES_H
