// Writes a mark on a stream, around a captured collective (graph_marks.h): 16 bytes to pinned
// memory by one thread.

#include "cuda/ranks/graph_marks.h"

#include "partita_rt/cuda/launch.cuh"
#include "partita_rt/cuda/scalar.h"

namespace partita_rt::cuda {

namespace {

/// Writes the number last: a host that reads the number first finds its call, or a later one.
__global__ void markCollective(GraphMark *mark, const Control *control, uint64_t number) {
  auto *at = static_cast<volatile GraphMark *>(mark);
  at->call = control ? control->call : 0;
  __threadfence_system();
  at->number = number;
}

} // namespace

void writeMark(const Stream &stream, GraphMark *mark, const Control *control, uint64_t number) {
  PARTITA_RT_LAUNCH(markCollective, 1, 1, 0, stream, mark, control, number);
}

} // namespace partita_rt::cuda
