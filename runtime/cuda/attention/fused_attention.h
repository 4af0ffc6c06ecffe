// Attention with a library's fused kernels (cuDNN), if possible: supported calls, splitting, the
// call.
//
// The library is asked once for each shape of a call whether it has a kernel, and how much
// workspace that takes. If this is more than available, the call is split by sequences, or by heads
// of one sequence. The answer is kept, so a function of the program that has run once can be
// captured in a CUDA graph. All of it depends only on shapes, the device and the library; so do the
// bits, as the library is asked for deterministic kernels, unless AttentionBy says otherwise.

#ifndef PARTITA_RT_CUDA_ATTENTION_FUSED_ATTENTION_H
#define PARTITA_RT_CUDA_ATTENTION_FUSED_ATTENTION_H

#include "cuda/attention/fused_library.h"
#include "partita_rt/cuda/stream.h"
#include "partita_rt/kernels.h"

#include <map>
#include <memory>
#include <set>
#include <string>

namespace partita_rt::cuda {

/// PARTITA_RT_ATTENTION: own kernels (the default); own kernels, but the backward pass never jointly
/// (attentionBackwardWgmmaByTiles); cuDNN's where supported; cuDNN's and an error where not supported; or
/// cuDNN's where supported, also those that are not deterministic.
enum class AttentionBy : uint8_t { Own, Tiles, Auto, Cudnn, Nondeterministic };
/// Throws Error if the variable is none of "own", "tiles", "auto", "cudnn", "nondeterministic".
AttentionBy attentionBy();

/// Describes the kernels on this machine: "own kernels", "cuDNN 9.19.0 where it can". Throws Error
/// if cuDNN is required and missing.
std::string attentionMakers();
/// Returns the bytes of workspace: kAttentionWorkspace, or 0.
int64_t fusedWorkspaceBytes();

/// The arguments of one attentionForward or attentionBackward.
struct FusedCall {
  DType dtype;
  bool backward;
  AttentionShape shape;
  bool bias; ///< a bias, or its gradient, is present
  HeadsOf<const void> q, k, v;
  HeadsOf<void> out; ///< forward
  float *logSumExp;  ///< [batch, heads, sequence]; forward: null if not needed
  HeadsOf<void> dq, dk, dv;
  HeadsOf<const void> dout, forwardOut;
  float *workspace; ///< backward: attentionBackwardWorkspace floats
};

/// Returns why the library is not asked for this call, or "". The only rule: 16-bit heads of at
/// most 256 elements in full packs of 16 bytes, without a bias, a window, documents, a layout or dropout; causal calls have as
/// many keys as queries.
std::string whyNotFused(const FusedCall &call);

template <typename T> HeadsOf<void> untyped(const HeadsOf<T> &heads) {
  return {heads.data, heads.batchStride, heads.rowStride, heads.headStride};
}
template <typename T> HeadsOf<const void> untyped(const HeadsOf<const T> &heads) {
  return {heads.data, heads.batchStride, heads.rowStride, heads.headStride};
}

class FusedAttention {
public:
  /// workspace: device memory, 256-byte aligned, for the calls of one stream.
  FusedAttention(AttentionBy by, std::unique_ptr<FusedLibrary> library, void *workspace,
                 int64_t workspaceBytes);

  /// Runs the call. Returns false, without doing anything, if the own kernels must do it. Throws
  /// Error, with the reason, if the library was required (AttentionBy::Cudnn), and if it fails.
  bool run(const Stream &stream, const FusedCall &call);

  /// Returns "cuDNN 9.19.0 computes 2 of its shapes, own kernels the others: a window"; "" before the
  /// first call.
  std::string text() const;

private:
  struct Plan {
    std::unique_ptr<FusedPlan> plan; ///< null: see `why`
    FusedShape chunk;                ///< the shape that the plan computes at a time
    std::string why;
  };
  Plan plan(const FusedShape &full);
  void launch(const Stream &stream, const Plan &plan, const FusedCall &call);

  AttentionBy by;
  std::unique_ptr<FusedLibrary> library;
  void *workspace;
  int64_t workspaceBytes;
  std::map<FusedShape, Plan> plans;
  std::set<std::string> refused; ///< why the library was not asked for some calls
};

/// Returns cuDNN for the current device, with fusedWorkspaceBytes of memory. Null: own kernels do
/// it all, and `why` has the reason unless they were asked for. Throws Error if cuDNN is required
/// and missing, and if it cannot use the device.
std::unique_ptr<FusedAttention> fusedAttention(void *workspace, std::string &why);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_FUSED_ATTENTION_H
