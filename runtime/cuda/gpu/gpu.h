// A rank's GPU as the runtime keeps it: memory, streams, captured functions.

#ifndef PARTITA_RT_CUDA_GPU_H
#define PARTITA_RT_CUDA_GPU_H

#include "cuda/attention/fused_attention.h"
#include "cuda/gpu/event_times.h"
#include "cuda/gpu/transfer.h"
#include "cuda/memory/memory.h"
#include "cuda/products/products.h"
#include "partita_rt/cuda/device.h"

#include <functional>
#include <map>
#include <memory>

namespace partita_rt::cuda {

class Gpu : public Device {
public:
  /// On the current device, for a rank whose program, options and place are set. Points the rank's
  /// bases, inputs and transfers at its memory. Throws Error where there is too little.
  explicit Gpu(Rank &rank);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  static Gpu &of(const Rank &rank) { return static_cast<Gpu &>(*rank.device); }

  /// Of common/target.h.
  void sendInputs(Rank &rank, int64_t microBatches);
  void call(Rank &rank, void (*function)(Rank &), const std::function<void()> &meanwhile = {});
  void tune(Rank &rank, void (*function)(Rank &), const std::string &path);
  /// Of the GPU's memory, less free than before this took any.
  int64_t takenBytes() const;
  std::string attentionText() const;
  /// Returns when all that the rank has begun is complete.
  void finish();
  /// Forgets what was captured. Before communicators go: ncclCommDestroy waits until no graph has
  /// collectives of theirs.
  void dropGraphs();

  Products &matrixProducts() { return *products; }

private:
  /// One of the program's functions: called as it is once, then captured, then launched.
  struct Function {
    int calls = 0;
    cudaGraphExec_t graph = nullptr;
  };
  /// Where the host writes inputs: it goes on in the other one while they are copied.
  struct HostInputs {
    explicit HostInputs(const Program &program);
    ~HostInputs();
    PinnedMemory memory;
    std::vector<void *> at;
    cudaEvent_t copied = nullptr; ///< to the device
  };
  void setControl(const Rank &rank);
  void takeReport(Rank &rank);
  cudaGraphExec_t capture(Rank &rank, void (*function)(Rank &));
  /// The function itself, with events around its kernels.
  void callTimed(Rank &rank, void (*function)(Rank &));

  int64_t freeBefore; ///< bytes of the GPU's memory that were, before this took any
  DeviceMemory persistent, arena, inputs, scratchMemory, productsWorkspace, attentionWorkspace,
      control;
  PinnedMemory host, pinned, sent, shared;
  HostInputs hostInputs[2];
  int written = 0; ///< the one of these that rank.hostInputs is
  std::vector<void *> inputAt;
  cudaStream_t compute = nullptr;
  cudaEvent_t computed = nullptr; ///< what call() has begun
  std::unique_ptr<Products> products;
  std::unique_ptr<FusedAttention> attention; ///< null: own kernels
  std::string ownAttention;                  ///< why, if cuDNN was asked for
  std::unique_ptr<TransferEngine> transfers;
  std::map<void (*)(Rank &), Function> functions;
  int64_t timed = timedStep();       ///< the number of the step whose kernels are timed, or 0
  std::unique_ptr<EventTimes> times; ///< of that step, once it has begun
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_GPU_H
