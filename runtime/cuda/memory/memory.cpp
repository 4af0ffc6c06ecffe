// Device and pinned memory (memory.h).

#include "cuda/memory/memory.h"

#include "cuda/cuda.h"

#include <cstring>

namespace partita_rt::cuda {

DeviceMemory::DeviceMemory(int64_t bytes, const char *what) {
  if (bytes == 0)
    return;
  void *memory = nullptr;
  if (cudaError_t error = cudaMalloc(&memory, size_t(bytes)); error != cudaSuccess)
    fail("cannot allocate %lld bytes of the GPU's memory for the %s: %s", (long long)bytes, what,
         cudaGetErrorString(error));
  base = static_cast<char *>(memory);
}

DeviceMemory::~DeviceMemory() {
  if (base)
    cudaFree(base);
}

PinnedMemory::PinnedMemory(int64_t bytes, const char *what) {
  if (bytes == 0)
    return;
  void *memory = nullptr;
  cudaError_t error = cudaHostAlloc(&memory, size_t(bytes), cudaHostAllocMapped);
  if (error != cudaSuccess)
    fail("cannot allocate %lld bytes of pinned memory for the %s: %s", (long long)bytes, what,
         cudaGetErrorString(error));
  base = static_cast<char *>(memory);
  std::memset(base, 0, size_t(bytes));
}

PinnedMemory::~PinnedMemory() {
  if (base)
    cudaFreeHost(base);
}

} // namespace partita_rt::cuda
