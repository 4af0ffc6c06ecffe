// Shows the watchdog how far the collectives and messages of a CUDA graph are. A graph's events
// tell the host nothing, so a kernel of one thread writes, before and after each of them, its number
// to memory that the host sees. These kernels are on a branch of the graph that runs beside the
// collectives: they add 0.4 us to each; between them and the collective they added 2.9, and stream
// write operations in their place 4.3 (an H200, bench/gpu/results/2026-11-27-h200.md).

#ifndef PARTITA_RT_CUDA_RANKS_GRAPH_MARKS_H
#define PARTITA_RT_CUDA_RANKS_GRAPH_MARKS_H

#include "cuda/memory/memory.h"
#include "partita_rt/cuda/device.h"

#include <chrono>
#include <cuda_runtime.h>
#include <map>
#include <optional>
#include <string>

namespace partita_rt::cuda {

/// A collective in a call of one of the program's functions; written by the device.
struct GraphMark {
  int64_t call;    ///< Control::call; 0: none so far
  uint64_t number; ///< of the collective, in its communicator
};

/// Writes {the current call, number} on the stream. control: device memory, or null.
void writeMark(const Stream &stream, GraphMark *mark, const Control *control, uint64_t number);

/// The marks of one communicator. Its caller locks.
class GraphMarks {
public:
  /// `of`: "collectives over this axis".
  GraphMarks(Device &device, std::string of);
  ~GraphMarks();
  GraphMarks(const GraphMarks &) = delete;

  /// A collective's name in reports, and the text that ranks compare.
  struct Names {
    std::string text, alike;
  };
  /// Marks the start of a collective that is captured on the stream.
  void before(cudaStream_t stream, uint64_t number, Names names);
  /// Marks its end.
  void behind(cudaStream_t stream, uint64_t number);

  /// A collective that the current call is in.
  struct UnderWay {
    int64_t call; ///< 0: not in a graph
    uint64_t number;
    Names names;
    std::chrono::steady_clock::time_point since; ///< when underWay first found it
  };
  std::optional<UnderWay> underWay();
  /// Describes this rank's position relative to collective `number` of `call`, which another rank
  /// calls `alike`; "": in it.
  std::string whereIs(int64_t call, uint64_t number, const std::string &alike) const;

private:
  enum Which { Reached, Done };
  /// Writes the mark once what `stream` has queued is complete; the stream does not wait for it.
  void write(Which which, cudaStream_t stream, uint64_t number);
  GraphMark *at(Which which) const { return reinterpret_cast<GraphMark *>(shared.base) + which; }
  GraphMark read(Which which) const;
  const Names &namesOf(uint64_t number) const;

  Device &device;
  const std::string of;
  PinnedMemory shared;
  cudaStream_t side = nullptr; ///< one of the device's side streams
  cudaEvent_t fork = nullptr;
  std::map<uint64_t, Names> captured;
  GraphMark seen{}; ///< underWay's last result
  std::chrono::steady_clock::time_point seenSince;
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_RANKS_GRAPH_MARKS_H
