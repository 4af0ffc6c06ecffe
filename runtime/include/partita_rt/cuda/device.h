// A rank's GPU, as emitted programs and the runtime see it. Needs no CUDA header.
//
// An emitted step reads and writes only device memory, so it can be captured in a CUDA graph.
// Values that change from step to step (the rate, the step's number) are in Control, which the host
// fills before it launches the step; the step's results are in Report, which the host reads when
// the step is complete.

#ifndef PARTITA_RT_CUDA_DEVICE_H
#define PARTITA_RT_CUDA_DEVICE_H

#include "partita_rt/cuda/kernels.h"
#include "partita_rt/program.h"

#include <atomic>
#include <vector>

namespace partita_rt::cuda {

/// Writes the number of the current update, from 1, to *number.
void stepNumber(const Stream &stream, float *number, const Control *control);
/// Writes the key of the step's random numbers to *key.
void stepKey(const Stream &stream, int64_t *key, const Control *control);

/// A step's report to the host, in memory that both share. Fields as in StepReport.
struct Report {
  float loss;
  float gradientNorm;
  int64_t tokenCount;
  LossScaleReport scale;
  int32_t firstNonfinite;
};

/// The number of calls of the program's functions that the host has queued and seen complete, and
/// the step of the last one. The watchdog reads them from its own thread.
struct Progress {
  std::atomic<int64_t> begun{0}, complete{0}, step{0};
};

/// Rank::device of a CUDA program.
struct Device {
  Stream stream;                    ///< everything except collectives and transfers runs on it
  const Control *control = nullptr; ///< device memory
  Report *report = nullptr;         ///< shared memory
  Progress progress;
  /// Streams that a captured step may fork to without anything in it waiting for them. The capture
  /// joins them at its end (side_streams.h).
  std::vector<CUstream_st *> sideStreams;
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_DEVICE_H
