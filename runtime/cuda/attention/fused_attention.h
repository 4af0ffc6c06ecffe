// Attention by a library's fused kernels (cuDNN), where it can: whether, in which pieces, the call.
//
// A call's shape is asked for once: the library says whether it has a kernel for it and how much
// workspace that takes. Where this is more than there is, the call is made in pieces, of so many
// sequences or so many heads of one sequence. What is found is kept, so a function of the program
// that has run once can be captured in a CUDA graph. All of it depends on shapes, the device and
// the library alone; so do the bits, as the library is asked for deterministic kernels.

#ifndef PARTITA_RT_CUDA_FUSED_ATTENTION_H
#define PARTITA_RT_CUDA_FUSED_ATTENTION_H

#include "cuda/attention/fused_library.h"
#include "partita_rt/cuda/stream.h"
#include "partita_rt/kernels.h"

#include <map>
#include <memory>
#include <set>
#include <string>

namespace partita_rt::cuda {

/// PARTITA_RT_ATTENTION: own kernels (the default), cuDNN's where it can, or cuDNN's and an error
/// where it cannot.
enum class AttentionBy : uint8_t { Own, Auto, Cudnn };
/// Throws Error if the variable is none of "own", "auto", "cudnn".
AttentionBy attentionBy();

/// Who makes it on this machine, as text: "own kernels", "cuDNN 9.19.0 where it can". Throws Error
/// where it must be cuDNN and there is none.
std::string attentionMakers();
/// Bytes of workspace that this takes: kAttentionWorkspace, or none.
int64_t fusedWorkspaceBytes();

/// One attentionForward or attentionBackward.
struct FusedCall {
  DType dtype;
  bool backward;
  AttentionShape shape;
  bool bias; ///< or a gradient of it
  HeadsOf<const void> q, k, v;
  HeadsOf<void> out; ///< forward
  float *logSumExp;  ///< [batch, heads, sequence]; forward: null if it is not wanted
  HeadsOf<void> dq, dk, dv;
  HeadsOf<const void> dout, forwardOut;
  float *workspace; ///< backward: attentionBackwardWorkspace floats
};

/// The one rule of what a library is asked for: why not this call, or nothing. 16-bit heads of at
/// most 256 elements in whole packs of 16 bytes, without a bias or a window; causal where there are
/// as many keys as queries.
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

  /// False: the own kernels must make it, and nothing has been done. Throws Error, with the reason,
  /// where it had to be the library's (AttentionBy::Cudnn), and if the library fails.
  bool run(const Stream &stream, const FusedCall &call);

  /// "cuDNN 9.19.0 makes 2 shapes of it, own kernels the others: a window". Nothing: no call yet.
  std::string text() const;

private:
  struct Plan {
    std::unique_ptr<FusedPlan> plan; ///< null: `why` says why
    FusedShape piece;                ///< what the plan makes at a time
    std::string why;
  };
  Plan plan(const FusedShape &whole);
  void launch(const Stream &stream, const Plan &plan, const FusedCall &call);

  AttentionBy by;
  std::unique_ptr<FusedLibrary> library;
  void *workspace;
  int64_t workspaceBytes;
  std::map<FusedShape, Plan> plans;
  std::set<std::string> refused; ///< why the library was not asked for calls
};

/// cuDNN's, for the current device, with fusedWorkspaceBytes of memory. Null: own kernels are to
/// make it all, and `why` says why unless they were asked for. Throws Error
/// where it must be cuDNN, and if cuDNN cannot use the device.
std::unique_ptr<FusedAttention> fusedAttention(void *workspace, std::string &why);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_FUSED_ATTENTION_H
