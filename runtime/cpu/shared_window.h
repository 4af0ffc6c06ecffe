// Memory that the processes of one node share.

#ifndef PARTITA_RT_CPU_SHARED_WINDOW_H
#define PARTITA_RT_CPU_SHARED_WINDOW_H

#include <cstdint>
#include <memory>
#include <mpi.h>
#include <vector>

namespace partita_rt {

struct SharedWindow {
  std::vector<char *> places;  ///< by rank of the node, each at a multiple of 64 bytes
  std::shared_ptr<void> owner; ///< owns the memory; freeing it is collective
};

/// Allocates `bytes` for each process of `node`, all of which must call this. The contents of a place
/// are undefined: its rank constructs them, and a barrier must follow before others look.
SharedWindow shareMemory(MPI_Comm node, int64_t bytes);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_SHARED_WINDOW_H
