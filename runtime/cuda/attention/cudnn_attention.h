// cuDNN as a library of fused attention (fused_library.h): for the device at hand, or for one that
// is described.

#ifndef PARTITA_RT_CUDA_CUDNN_ATTENTION_H
#define PARTITA_RT_CUDA_CUDNN_ATTENTION_H

#include "cuda/attention/cudnn_graph.h"

#ifdef PARTITA_RT_CUDNN

namespace partita_rt::cuda {

/// Why cuDNN is not asked for a shape on a device, or null: it makes plans of some that
/// cudnn-frontend, which knows it better, does not let it. capability: 90 for sm_90.
const char *whyNotCudnn(const FusedShape &shape, int capability);

class CudnnAttention : public FusedLibrary {
public:
  /// library: loaded.
  explicit CudnnAttention(const CudnnLibrary &library);
  ~CudnnAttention() override;

  /// One of the two, before the first plan. Throw Error.
  void useCurrentDevice(int capability);
  /// properties: JSON as cuDNN writes of a device. Its plans can be made anywhere, and not be run.
  void useDevice(int capability, const std::string &properties);

  std::unique_ptr<FusedPlan> plan(const FusedShape &shape) override;

private:
  std::vector<CudnnDescriptor> proposals(const CudnnGraph &graph) const;

  CudnnLibrary library;
  int capability = 0;
  cudnnHandle_t handle = nullptr;
  std::deque<CudnnDescriptor> device; ///< its properties
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDNN

#endif // PARTITA_RT_CUDA_CUDNN_ATTENTION_H
