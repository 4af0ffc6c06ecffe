// The runtime's state of a rank's GPU: memory, streams, captured functions.

#ifndef PARTITA_RT_CUDA_GPU_GPU_H
#define PARTITA_RT_CUDA_GPU_GPU_H

#include "cuda/attention/fused_attention.h"
#include "cuda/gpu/event_times.h"
#include "cuda/gpu/transfer.h"
#include "cuda/matmuls/matmuls.h"
#include "cuda/memory/memory.h"
#include "partita_rt/cuda/device.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>

namespace partita_rt::cuda {

class Gpu : public Device {
public:
  /// Uses the current device, for a rank whose program, options and position are set. Points the
  /// rank's bases, inputs and transfers at its memory. Throws Error if there is too little memory.
  explicit Gpu(Rank &rank);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  static Gpu &of(const Rank &rank) { return static_cast<Gpu &>(*rank.device); }

  /// Implements the functions of common/target.h.
  void sendInputs(Rank &rank, int64_t microBatches);
  bool call(Rank &rank, void (*function)(Rank &), const std::function<void()> &meanwhile = {});
  void tune(Rank &rank, const std::vector<void (*)(Rank &)> &functions, const std::string &path);
  /// Returns how much less of the GPU's memory is free than before this took any.
  int64_t takenBytes() const;
  std::string attentionText() const;
  /// The step whose kernels are to be timed (PARTITA_RT_KERNEL_TIMES), if it has not come; else 0.
  int64_t stepLeftToTime() const { return times ? 0 : timed; }
  /// Returns when all that the rank has started is complete.
  void finish();
  /// Destroys captured graphs. Call it before communicators are destroyed: ncclCommDestroy waits
  /// until no graph has collectives of theirs.
  void dropGraphs();

  Matmuls &matmuls() { return *theMatmuls; }

private:
  /// A function of the program, in the updates that give `asked` the same answers: called directly once, then captured, then launched.
  struct Function {
    int calls = 0;
    cudaGraphExec_t graph = nullptr;
    std::vector<AskedStep> asked;
  };
  /// A host buffer for inputs; the host fills the other one while this is copied.
  struct HostInputs {
    explicit HostInputs(const Program &program);
    ~HostInputs();
    PinnedMemory memory;
    std::vector<void *> at;
    cudaEvent_t copied = nullptr; ///< after the copy to the device
  };
  Function &functionOf(const Rank &rank, void (*function)(Rank &));
  void setControl(const Rank &rank);
  void takeReport(Rank &rank);
  cudaGraphExec_t capture(Rank &rank, void (*function)(Rank &));
  /// Calls the function directly, with events around its kernels.
  void callTimed(Rank &rank, void (*function)(Rank &));

  RankPosition *position; ///< the rank's; may be null
  int64_t freeBefore;     ///< free GPU memory before this took any
  DeviceMemory persistent, arena, inputs, scratchMemory, matmulWorkspace, attentionWorkspace,
      control;
  PinnedMemory host, pinned, sent, shared;
  HostInputs hostInputs[2];
  int written = 0; ///< index of the one that rank.hostInputs is
  std::vector<void *> inputAt;
  cudaStream_t compute = nullptr;
  cudaEvent_t computed = nullptr; ///< after all that call() has started
  std::unique_ptr<Matmuls> theMatmuls;
  std::unique_ptr<FusedAttention> attention; ///< null: own kernels do it
  std::string ownAttention;                  ///< the reason, if cuDNN was asked for
  std::unique_ptr<TransferEngine> transfers;
  std::map<void (*)(Rank &), std::deque<Function>> functions;
  int64_t timed = timedStep();       ///< the number of the timed step, or 0
  std::unique_ptr<EventTimes> times; ///< the timed step's, once it has started
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_GPU_GPU_H
