// cuDNN as a library of fused attention (fused_library.h): for the current device, or for a device
// that is described.

#ifndef PARTITA_RT_CUDA_ATTENTION_CUDNN_ATTENTION_H
#define PARTITA_RT_CUDA_ATTENTION_CUDNN_ATTENTION_H

#include "cuda/attention/cudnn_graph.h"

#ifdef PARTITA_RT_CUDNN

namespace partita_rt::cuda {

/// Returns why cuDNN is not asked for a shape on a device, or null: cuDNN makes plans for some
/// shapes that cudnn-frontend rejects. capability: 90 for sm_90.
const char *whyNotCudnn(const FusedShape &shape, int capability);

class CudnnAttention : public FusedLibrary {
public:
  /// library: already loaded.
  explicit CudnnAttention(const CudnnLibrary &library);
  ~CudnnAttention() override;

  /// Chooses the device. Call one of the two before the first plan. Both throw Error.
  void useCurrentDevice(int capability);
  /// properties: JSON, as cuDNN describes a device. Plans for it can be made anywhere, but not run.
  void useDevice(int capability, const std::string &properties);

  std::unique_ptr<FusedPlan> plan(const FusedShape &shape) override;

private:
  std::vector<CudnnDescriptor> proposals(const CudnnGraph &graph) const;

  CudnnLibrary library;
  int capability = 0;
  cudnnHandle_t handle = nullptr;
  std::deque<CudnnDescriptor> device; ///< the device's properties
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDNN

#endif // PARTITA_RT_CUDA_ATTENTION_CUDNN_ATTENTION_H
