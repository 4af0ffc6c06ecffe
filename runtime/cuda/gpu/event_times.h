// Times each kernel of one step, with events on the compute stream (PARTITA_RT_KERNEL_TIMES).

#ifndef PARTITA_RT_CUDA_GPU_EVENT_TIMES_H
#define PARTITA_RT_CUDA_GPU_EVENT_TIMES_H

#include "partita_rt/cuda/kernel_times.h"

#include <cuda_runtime.h>

#include <string>
#include <vector>

namespace partita_rt::cuda {

/// Times by events before and after each launch. The host enqueues faster than the GPU computes, so
/// the time between them is the kernel's, except for kernels of a few microseconds, whose times
/// include a gap that a graph does not have.
class EventTimes : public KernelTimes {
public:
  ~EventTimes();
  void begin(cudaStream_t stream, const char *name, const void *kernel, double flops) override;
  void end(cudaStream_t stream) override;
  /// Formats all launches so far, which must be complete, summed by kernel, the longest first:
  ///
  ///     kernels  641 launches, 66.1 ms from the first to the last, 65.3 ms in them
  ///           12.345 ms  18.9 %    12 x  1028.8 us  692.1 TFLOP/s  matmul bfloat16[...
  std::string table();

private:
  struct Launch {
    std::string name;
    double flops;
    cudaEvent_t begin, end;
  };
  std::vector<Launch> launches;
};

/// Returns the number of the step that PARTITA_RT_KERNEL_TIMES names; 0: none. Throws Error if it
/// is not a number from 1 on.
int64_t timedStep();

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_GPU_EVENT_TIMES_H
