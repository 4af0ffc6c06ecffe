// The interface to a library of fused attention kernels: returns a plan for a shape. The library is
// cuDNN (cudnn_attention.cpp).

#ifndef PARTITA_RT_CUDA_ATTENTION_FUSED_LIBRARY_H
#define PARTITA_RT_CUDA_ATTENTION_FUSED_LIBRARY_H

#include "partita_rt/types.h"

#include <memory>
#include <string>

struct CUstream_st;

namespace partita_rt::cuda {

/// The shape that a kernel is chosen for. Heads, keys and values are grouped as in AttentionShape;
/// a query sees all keys or, if causal, those up to its own number. Strides are in elements.
struct FusedShape {
  struct Strides {
    int64_t batch, head, row;
  };
  DType dtype;
  bool backward, causal;
  bool stats;         ///< forward: log-sum-exp is needed
  bool deterministic; ///< the same bits in each run
  int64_t batch, heads, groups, sequence, keySequence, headDim, valueDim;
  int64_t rowsOfBatch; ///< from one sequence to the next in [batch, heads, sequence] scalars
  Strides q, k, v, out, dout, dq, dk, dv;

  /// Returns "attention forward, bfloat16, 32 x 1024 queries, 1024 keys, 12 heads of 64, causal", for
  /// the reader: shapes that differ in strides, say, share a text.
  std::string text() const;
};
bool operator<(const FusedShape &left, const FusedShape &right);

/// The numbers of a plan's operands.
enum FusedOperand : int64_t {
  kFusedQ,
  kFusedK,
  kFusedV,
  kFusedOut,
  kFusedStats, ///< log-sum-exp, natural, float [batch, heads, sequence]
  kFusedDout,
  kFusedDelta, ///< float [batch, heads, sequence], which the backward pass overwrites
  kFusedDq,
  kFusedDk,
  kFusedDv,
  kFusedOperands
};
struct FusedPointers {
  void *data[kFusedOperands] = {}; ///< on the device; null: not an operand of this pass
  float scale = 1.0f;
};

class FusedPlan {
public:
  virtual ~FusedPlan() = default;
  int64_t workspaceBytes = 0;
  /// Launches the kernels. Pointers are 16-byte aligned; the workspace has workspaceBytes.
  virtual void run(CUstream_st *stream, const FusedPointers &pointers, void *workspace) = 0;
};

class FusedLibrary {
public:
  virtual ~FusedLibrary() = default;
  std::string name; ///< "cuDNN 9.19.0"
  /// Returns a plan. Throws Error with the reason if the library has no kernel for the shape, or no
  /// deterministic one where the shape asks for it.
  virtual std::unique_ptr<FusedPlan> plan(const FusedShape &shape) = 0;
};

/// Returns cuDNN for the current device. Null: it cannot be used, and `why` says why.
std::unique_ptr<FusedLibrary> openCudnn(std::string &why);
/// Returns cuDNN's name if it can be loaded. "": it cannot, and `why` says why (this program was
/// built without its headers, it is missing, it is too old). Needs no device.
std::string findCudnn(std::string &why);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_FUSED_LIBRARY_H
