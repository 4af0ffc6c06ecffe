// A rank's GPU, as emitted programs and the runtime see it. Needs no CUDA header.
//
// An emitted step reads and writes only device memory, so it can be captured in a CUDA graph.
// Values that change from step to step (the rate, the step's number) are in Control, which the host
// fills before it launches the step; a step that queues other work in some updates asks for it (stepIsExact);
// the step's results are in Report, which the host reads when
// the step is complete.

#ifndef PARTITA_RT_CUDA_DEVICE_H
#define PARTITA_RT_CUDA_DEVICE_H

#include "partita_rt/cuda/kernels.h"
#include "partita_rt/program.h"

#include <algorithm>
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

/// What a function of the program has asked of the update's number, and the answer. The host, which queues the function's work, decides by it
/// what to queue, so a graph of the function holds for the updates that give the same answers.
struct AskedStep {
  ExactSteps exact;
  bool isExact;
  bool operator==(const AskedStep &other) const {
    return exact == other.exact && isExact == other.isExact;
  }
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
  std::vector<AskedStep> asked; ///< by the function that is being called or captured
};

/// Is the current update exact? Notes that the function has asked.
inline bool stepIsExact(const Rank &rank, ExactSteps exact) {
  AskedStep answer{exact, exact.contains(rank.update)};
  std::vector<AskedStep> &asked = rank.device->asked;
  if (std::find(asked.begin(), asked.end(), answer) == asked.end())
    asked.push_back(answer);
  return answer.isExact;
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_DEVICE_H
