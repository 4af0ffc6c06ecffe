// A rank's memory on its GPU and pinned memory on its host: one allocation per arena.

#ifndef PARTITA_RT_CUDA_MEMORY_MEMORY_H
#define PARTITA_RT_CUDA_MEMORY_MEMORY_H

#include <cstdint>

namespace partita_rt::cuda {

/// A block of device memory, 256-byte aligned, with undefined contents. Throws Error naming `what`.
class DeviceMemory {
public:
  DeviceMemory(int64_t bytes, const char *what);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  char *base = nullptr;
};

/// Host memory that copies read and write directly, initially zero. Device code sees it at the same
/// address.
class PinnedMemory {
public:
  PinnedMemory(int64_t bytes, const char *what);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory &) = delete;
  PinnedMemory &operator=(const PinnedMemory &) = delete;
  char *base = nullptr;
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_MEMORY_MEMORY_H
