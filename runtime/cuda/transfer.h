// Copies between a GPU and its host, on two streams (partita_rt/transfer.h).

#ifndef PARTITA_RT_CUDA_TRANSFER_H
#define PARTITA_RT_CUDA_TRANSFER_H

#include "partita_rt/transfer.h"

#include <cuda_runtime.h>
#include <deque>
#include <vector>

namespace partita_rt {

/// A copy begins when what was before it on the compute stream is complete; a wait lets the compute
/// stream wait for it and for all copies that began before it, and not the host. So a step with
/// copies can be captured. Each direction has a stream, as GPUs have an engine for each.
class TransferEngine {
public:
  explicit TransferEngine(cudaStream_t compute);
  ~TransferEngine();
  TransferEngine(const TransferEngine &) = delete;
  TransferEngine &operator=(const TransferEngine &) = delete;

  HostCopy toHost(void *host, const void *device, int64_t bytes);
  HostCopy toDevice(void *device, const void *host, int64_t bytes);
  void wait(HostCopy copy);
  int64_t outstanding() const { return int64_t(underWay.size()); }

  TransferBytes count;

private:
  struct Copy {
    int64_t number;
    cudaStream_t stream;
    cudaEvent_t done;
  };
  HostCopy start(cudaStream_t stream, void *to, const void *from, int64_t bytes);
  cudaEvent_t event();

  cudaStream_t compute, hostward = nullptr, deviceward = nullptr;
  cudaEvent_t begun = nullptr;
  std::deque<Copy> underWay; ///< in the order of their numbers
  std::vector<cudaEvent_t> idle;
  int64_t started = 0;
};

} // namespace partita_rt

#endif // PARTITA_RT_CUDA_TRANSFER_H
