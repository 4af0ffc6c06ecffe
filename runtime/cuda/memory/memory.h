// A rank's memory on its GPU and the pinned memory of its host: one allocation per arena.

#ifndef PARTITA_RT_CUDA_MEMORY_H
#define PARTITA_RT_CUDA_MEMORY_H

#include <cstdint>

namespace partita_rt::cuda {

/// Bytes of device memory; 256-byte aligned. Contents undefined. Throws Error naming `what`.
class DeviceMemory {
public:
  DeviceMemory(int64_t bytes, const char *what);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  char *base = nullptr;
};

/// Bytes of the host's memory that copies read and write directly; zeros at first. Device code sees
/// them at the same address.
class PinnedMemory {
public:
  PinnedMemory(int64_t bytes, const char *what);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory &) = delete;
  PinnedMemory &operator=(const PinnedMemory &) = delete;
  char *base = nullptr;
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_MEMORY_H
