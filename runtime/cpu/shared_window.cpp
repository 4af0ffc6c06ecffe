// Allocates memory that the processes of one node share (shared_window.h).

#include "cpu/shared_window.h"

namespace partita_rt {

SharedWindow shareMemory(MPI_Comm node, int64_t bytes) {
  int size = 0;
  MPI_Comm_size(node, &size);
  auto *window = new MPI_Win;
  char *base = nullptr;
  MPI_Win_allocate_shared(MPI_Aint(bytes + 64), 1, MPI_INFO_NULL, node, &base, window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, *window);
  SharedWindow shared;
  shared.owner = std::shared_ptr<void>(window, [](void *pointer) {
    auto *window = static_cast<MPI_Win *>(pointer);
    MPI_Win_unlock_all(*window);
    MPI_Win_free(window);
    delete window;
  });
  for (int rank = 0; rank < size; ++rank) {
    MPI_Aint length;
    int unit;
    char *at;
    MPI_Win_shared_query(*window, rank, &length, &unit, &at);
    at += (64 - reinterpret_cast<uintptr_t>(at) % 64) % 64;
    shared.places.push_back(at);
  }
  return shared;
}

} // namespace partita_rt
