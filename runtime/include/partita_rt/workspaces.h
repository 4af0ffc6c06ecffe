// Sizes, in floats, of workspaces that programs give to kernels. The compiler plans them in the
// arena, and the kernels use all of them. The compiler includes this header, so it includes no
// other header of the runtime.

#ifndef PARTITA_RT_WORKSPACES_H
#define PARTITA_RT_WORKSPACES_H

#include <cstdint>

namespace partita_rt {

/// The CPU's attention pads a head's rows to a multiple of this many elements.
constexpr int64_t kHeadPad = 16;

/// The sizes that determine the workspace of attention's backward pass on the CPU.
struct AttentionWork {
  int64_t queries;  ///< batch * heads * sequence
  int64_t sequence; ///< of queries
  int64_t headDim;  ///< of q and k
  int64_t groups;   ///< query heads per key/value head
  bool isFloat;     ///< else heads are stored in 16 bits
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

/// Returns the GPU's workspace, the same for all types: delta and the base of each query (batch *
/// heads * sequence).
constexpr int64_t attentionWorkspaceOnCuda(int64_t queries) { return 2 * queries; }

} // namespace partita_rt

#endif // PARTITA_RT_WORKSPACES_H
