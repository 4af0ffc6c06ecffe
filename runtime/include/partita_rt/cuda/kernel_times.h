// Timing hooks, called around each launch of a timed stream. Needs no CUDA header.

#ifndef PARTITA_RT_CUDA_KERNEL_TIMES_H
#define PARTITA_RT_CUDA_KERNEL_TIMES_H

#include "partita_rt/cuda/stream.h"

namespace partita_rt::cuda {

class KernelTimes {
public:
  /// kernel: the __global__ function, or null for a library's kernel. flops: 0 if not counted.
  virtual void begin(CUstream_st *stream, const char *name, const void *kernel, double flops) = 0;
  virtual void end(CUstream_st *stream) = 0;

protected:
  ~KernelTimes() = default;
};

/// A timer for a launch, from construction to the end of the scope.
class Timed {
public:
  Timed(const Stream &stream, const char *name, const void *kernel, double flops = 0)
      : times(stream.times), handle(stream.handle) {
    if (times)
      times->begin(handle, name, kernel, flops);
  }
  ~Timed() {
    if (times)
      times->end(handle);
  }
  Timed(const Timed &) = delete;
  Timed &operator=(const Timed &) = delete;

private:
  KernelTimes *times;
  CUstream_st *handle;
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_KERNEL_TIMES_H
