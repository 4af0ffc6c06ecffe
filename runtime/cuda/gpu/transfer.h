// Copies between a GPU and its host, and work of the host, on streams of their own
// (partita_rt/transfer.h).

#ifndef PARTITA_RT_CUDA_GPU_TRANSFER_H
#define PARTITA_RT_CUDA_GPU_TRANSFER_H

#include "cuda/memory/memory.h"
#include "partita_rt/transfer.h"

#include <cuda_runtime.h>
#include <deque>
#include <vector>

namespace partita_rt {

/// A copy starts when the earlier work on the compute stream is complete; a wait makes the compute
/// stream, not the host, wait for it and for all copies that started before it. So a step with
/// copies can be captured. Each direction has a stream, as GPUs have an engine for each.
class TransferEngine {
public:
  /// updates: the max number of updates by the host in a step.
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

  /// Returns space for kHostScalars numbers that the device writes and the host's work reads.
  double *nextScalars();
  void hostwardAfterCompute();
  void waitHostward(cudaEvent_t event);
  void copyHostward(void *host, const void *device, int64_t bytes);
  /// Queues work of the host for when all copies to the host so far are complete.
  void work(std::function<void()> work);
  /// Queues a copy to the device after the last work.
  void copyDeviceward(void *device, const void *host, int64_t bytes);
  /// Returns an event for the end of the tile's work, or of the copies after it. The engine owns
  /// the event, which is valid until the program's function ends.
  cudaEvent_t endTile(bool copiesDeviceward);
  void waitCompute(cudaEvent_t event);

  /// Marks the start of a function of the program. Returns a mark for end().
  size_t begin();
  /// Discards the function's work: it is complete and will not run again by itself, as a graph
  /// does.
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
  cudaEvent_t begun = nullptr, worked = nullptr; ///< worked: after the host's last work
  std::deque<Copy> underWay;                     ///< in the order of numbers
  std::vector<cudaEvent_t> idle, ofTiles;
  int64_t started = 0;
  std::deque<std::function<void()>> works;
  cuda::PinnedMemory scalars;
  int64_t scalarSlots, nextSlot = 0;
};

} // namespace partita_rt

#endif // PARTITA_RT_CUDA_GPU_TRANSFER_H
