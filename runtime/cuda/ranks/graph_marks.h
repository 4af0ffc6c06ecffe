// Where the collectives and messages of a CUDA graph are, for the watchdog. A graph's events say
// nothing to the host, so the stream of a communicator writes, in front of each of them and behind
// it, which one it is to memory that the host sees.

#ifndef PARTITA_RT_CUDA_GRAPH_MARKS_H
#define PARTITA_RT_CUDA_GRAPH_MARKS_H

#include "cuda/memory/memory.h"
#include "partita_rt/cuda/device.h"

#include <chrono>
#include <cuda_runtime.h>
#include <map>
#include <optional>
#include <string>

namespace partita_rt::cuda {

/// A collective of a call of one of the program's functions; written by the device.
struct GraphMark {
  int64_t call;    ///< Control::call; 0: none yet
  uint64_t number; ///< of the collective, in its communicator
};

/// Writes {the call under way, number} on the stream. control: device memory, or null.
void writeMark(const Stream &stream, GraphMark *mark, const Control *control, uint64_t number);

/// Of one communicator. Its caller locks.
class GraphMarks {
public:
  /// `of`: "collectives over this axis".
  GraphMarks(const Device &device, std::string of)
      : device(device), of(std::move(of)), shared(2 * sizeof(GraphMark), "collectives' marks") {}

  /// What reports call a collective, and what ranks compare of it.
  struct Names {
    std::string text, alike;
  };
  /// A collective is being captured on the stream.
  void before(cudaStream_t stream, uint64_t number, Names names);
  /// It has been.
  void behind(cudaStream_t stream, uint64_t number);

  /// The collective that the call under way is in.
  struct UnderWay {
    int64_t call; ///< 0: of no graph
    uint64_t number;
    Names names;
    std::chrono::steady_clock::time_point since; ///< when this was first asked and in it
  };
  std::optional<UnderWay> underWay();
  /// Where this rank is, seen from collective `number` of `call`, which another one calls `alike`;
  /// "": in it.
  std::string whereIs(int64_t call, uint64_t number, const std::string &alike) const;

private:
  enum Which { Reached, Done };
  GraphMark *at(Which which) const { return reinterpret_cast<GraphMark *>(shared.base) + which; }
  GraphMark read(Which which) const;
  const Names &namesOf(uint64_t number) const;

  const Device &device;
  const std::string of;
  PinnedMemory shared;
  std::map<uint64_t, Names> captured;
  GraphMark seen{};                      ///< what underWay last found
  std::chrono::steady_clock::time_point seenSince;
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_GRAPH_MARKS_H
