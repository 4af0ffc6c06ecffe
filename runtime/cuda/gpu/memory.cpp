// Device and pinned memory (memory.h).

#include "cuda/gpu/memory.h"

#include "common/run/launch.h"
#include "common/run/metrics.h"
#include "common/run/options.h"
#include "cuda/attention/fused_attention.h"
#include "cuda/cuda.h"
#include "partita_rt/cuda/shapes.h"

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

void checkFits(const std::vector<MemoryPart> &needs) {
  size_t free = 0, total = 0;
  checkCuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  int64_t sum = 0;
  std::string parts;
  for (const MemoryPart &need : needs) {
    sum += need.bytes;
    if (need.bytes > 0)
      parts += (parts.empty() ? "" : ", ") + grouped(need.bytes) + " " + need.what;
  }
  if (sum <= int64_t(free))
    return;
  int device = 0;
  cudaDeviceProp properties;
  checkCuda(cudaGetDevice(&device), "cudaGetDevice");
  checkCuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  fail("the program needs %s bytes of its GPU's memory (%s); %s has %s, of which %s are free "
       "(CUDA's "
       "context, NCCL and other programs have the rest); free it, or compile with a smaller batch, "
       "--recompute, a higher --zero-stage or more ranks",
       grouped(sum).c_str(), parts.c_str(), properties.name, grouped(int64_t(total)).c_str(),
       grouped(int64_t(free)).c_str());
}

} // namespace partita_rt::cuda

/// The compiler's ledger, an allocation each; and what cuDNN has where the user asks for it. CUDA's
/// context and NCCL's buffers are not in it.
std::vector<partita_rt::MemoryPart> partita_rt::deviceParts(const Program &program,
                                                            const Stage &stage,
                                                            const RunOptions *options) {
  std::vector<MemoryPart> parts = {{"persistent", stage.persistentBytes},
                                   {"arena", arenaBytes(stage, options)},
                                   {"inputs", inputBytes(program)},
                                   {"scratch", stage.scratchBytes},
                                   {"workspace of matrix products", cuda::kProductsWorkspace}};
  if (int64_t bytes = cuda::fusedWorkspaceBytes())
    parts.push_back({"workspace of cuDNN's attention", bytes});
  return parts;
}
