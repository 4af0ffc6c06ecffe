// Reserves OpenBLAS's buffers (blas_buffers.h).

#include "cpu/kernels/blas_buffers.h"

#include "common/grouped.h"
#include "cpu/process.h"
#include "partita_rt/types.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

// OpenBLAS's own matmuls call these. A library that exports neither (another build, another BLAS)
// manages its memory by itself.
extern "C" __attribute__((weak)) void *blas_memory_alloc(int);
extern "C" __attribute__((weak)) void blas_memory_free(void *);

namespace partita_rt {

/// The size that OpenBLAS 0.3 maps for one buffer on x86-64 and 64-bit ARM.
static constexpr size_t kBufferBytes = size_t(128) << 20;
/// OpenBLAS remembers at least this many. It maps those of further threads when they need them.
static constexpr size_t kMostBuffers = 64;

/// The buffers' addresses: like OpenBLAS's, per process. Written before there are ranks.
static std::vector<void *> buffers;

void startWithoutBlasThreads() {
  const char *threads = std::getenv("OPENBLAS_NUM_THREADS");
  if (addressSpaceText().empty() || (threads && std::string(threads) == "1"))
    return;
  std::vector<std::string> words = commandLine();
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  if (argv.size() > 1)
    execv("/proc/self/exe", argv.data()); // if this fails, the process continues as it is
}

/// How many buffers, at most this many, could OpenBLAS map now? Sets errno if it is fewer.
static size_t countFitting(size_t most) {
  std::vector<void *> probes;
  while (probes.size() < most) {
    void *probe =
        mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED)
      break;
    probes.push_back(probe);
  }
  int error = errno;
  for (void *probe : probes)
    munmap(probe, kBufferBytes);
  errno = error;
  return probes.size();
}

void takeBlasBuffers(int ranks, int threads) {
  if (!blas_memory_alloc || !blas_memory_free)
    return;
  const size_t needed = size_t(ranks) + size_t(threads) - 1; // threads are per process
  std::vector<void *> taken;
  while (taken.size() < std::min(needed, kMostBuffers) && countFitting(1))
    taken.push_back(blas_memory_alloc(0));
  size_t fitting = taken.size();
  if (fitting == kMostBuffers)
    fitting += countFitting(needed - fitting);
  int error = errno;
  buffers = taken;
  for (void *buffer : taken)
    blas_memory_free(buffer); // it remains mapped, for any thread that needs one
  if (fitting < needed)
    fail("matmuls need %s bytes of address space for OpenBLAS's packing buffers, %s for "
         "each of %zu %s, and only %zu of these could be mapped: %s%s",
         grouped(int64_t(kBufferBytes) * int64_t(needed)).c_str(),
         grouped(int64_t(kBufferBytes)).c_str(), needed,
         threads > 1   ? "ranks and threads"
         : needed == 1 ? "rank"
                       : "ranks",
         fitting, std::strerror(error),
         addressSpaceText().empty() ? "; see vm.overcommit_memory" : addressSpaceText().c_str());
}

int64_t blasBuffersResident() {
  int64_t bytes = 0;
  for (const void *buffer : buffers)
    bytes += residentBytes(buffer, int64_t(kBufferBytes));
  return bytes;
}

} // namespace partita_rt
