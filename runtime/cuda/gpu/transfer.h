// Copies between a GPU and its host, and work of the host, on streams of their own
// (partita_rt/transfer.h).

#ifndef PARTITA_RT_CUDA_TRANSFER_H
#define PARTITA_RT_CUDA_TRANSFER_H

#include "cuda/memory/memory.h"
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
  /// updates: how many updates by the host a step may make.
  TransferEngine(cudaStream_t compute, int64_t updates);
  ~TransferEngine();
  TransferEngine(const TransferEngine &) = delete;
  TransferEngine &operator=(const TransferEngine &) = delete;

  HostCopy toHost(void *host, const void *device, int64_t bytes);
  HostCopy toDevice(void *device, const void *host, int64_t bytes);
  void wait(HostCopy copy);
  int64_t outstanding() const { return int64_t(underWay.size()); }

  TransferBytes count;

  //===-- Updates by the host, a tile: copies hostward, work, copies deviceward ---------------===//

  /// Room for kHostScalars numbers that the device writes and the host's work reads.
  double *nextScalars();
  void hostwardAfterCompute();
  void waitHostward(cudaEvent_t event);
  void copyHostward(void *host, const void *device, int64_t bytes);
  /// The host's, when all copies hostward so far are complete.
  void work(std::function<void()> work);
  /// Behind the last work.
  void copyDeviceward(void *device, const void *host, int64_t bytes);
  /// When the tile's work, or the copies behind it, are complete. The event is the engine's, and
  /// good until the function of the program ends.
  cudaEvent_t endTile(bool copiesDeviceward);
  void waitCompute(cudaEvent_t event);

  /// A function of the program begins. Returns a mark for end().
  size_t begin();
  /// It is complete and will not run again by itself, as a graph does: its work is forgotten.
  void end(size_t mark);

private:
  struct Copy {
    int64_t number;
    cudaStream_t stream;
    cudaEvent_t done;
  };
  HostCopy start(cudaStream_t stream, void *to, const void *from, int64_t bytes);
  cudaEvent_t event();
  cudaEvent_t record(cudaStream_t stream);

  cudaStream_t compute, hostward = nullptr, deviceward = nullptr, working = nullptr;
  cudaEvent_t begun = nullptr, worked = nullptr; ///< worked: the last of the host's
  std::deque<Copy> underWay; ///< in the order of their numbers
  std::vector<cudaEvent_t> idle, ofTiles;
  int64_t started = 0;
  std::deque<std::function<void()>> works;
  cuda::PinnedMemory scalars;
  int64_t scalarSlots, nextSlot = 0;
};

} // namespace partita_rt

#endif // PARTITA_RT_CUDA_TRANSFER_H
