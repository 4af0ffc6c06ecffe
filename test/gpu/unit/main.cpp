// Runs the kernels' tests on a real GPU. They pass the addresses of vectors and of local variables
// as device memory. So that a GPU can access these, `new` and the stack that the tests run on use
// page-locked memory, which a GPU reads and writes over the bus at the same addresses: slow, but
// that does not matter here. (Managed memory would work too, but some virtual machines have none.)
//
// CUDA_LAUNCH_BLOCKING makes every launch wait for its kernel, including cuBLASLt's: tests read
// results without synchronizing.

#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <mutex>
#include <new>
#include <pthread.h>

namespace {

void must(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::_Exit(1);
}

/// Page-locked memory in blocks of powers of two, each preceded by its size; freed blocks are kept
/// for the next request of their size.
class Pool {
public:
  void *take(size_t bytes) {
    int order = kSmallest;
    while ((size_t(1) << order) < bytes + kHeader)
      ++order;
    std::lock_guard<std::mutex> lock(mutex);
    unsigned char *block = freed[order];
    if (block)
      std::memcpy(&freed[order], block + kHeader, sizeof(block));
    else
      block = cut(size_t(1) << order);
    std::memcpy(block, &order, sizeof(order));
    return block + kHeader;
  }
  /// Returns false if the memory does not belong to the pool.
  bool giveBack(void *memory) {
    auto *block = static_cast<unsigned char *>(memory) - kHeader;
    std::lock_guard<std::mutex> lock(mutex);
    bool mine = false;
    for (int i = 0; i < chunks && !mine; ++i)
      mine = block >= begin[i] && block < begin[i] + size[i];
    if (!mine)
      return false;
    int order;
    std::memcpy(&order, block, sizeof(order));
    std::memcpy(memory, &freed[order], sizeof(block));
    freed[order] = block;
    return true;
  }

private:
  static constexpr size_t kHeader = 256; // cudaMalloc has this alignment
  static constexpr int kSmallest = 9, kMostChunks = 256;
  static constexpr size_t kChunk = size_t(64) << 20;

  unsigned char *cut(size_t bytes) {
    if (chunks == 0 || size[chunks - 1] - used < bytes) {
      if (chunks == kMostChunks) {
        std::fprintf(stderr, "the tests' memory is used up\n");
        std::_Exit(1);
      }
      void *memory = nullptr;
      size[chunks] = bytes > kChunk ? bytes : kChunk;
      must(cudaHostAlloc(&memory, size[chunks], cudaHostAllocPortable | cudaHostAllocMapped),
           "cudaHostAlloc");
      begin[chunks++] = static_cast<unsigned char *>(memory);
      used = 0;
    }
    unsigned char *block = begin[chunks - 1] + used;
    used += bytes;
    return block;
  }

  // May run before constructors: all of it is zero then.
  std::mutex mutex;
  unsigned char *freed[64];
  unsigned char *begin[kMostChunks];
  size_t size[kMostChunks], used;
  int chunks;
};

Pool pool;
std::atomic<bool> running{false};
thread_local bool inside = false; // CUDA itself may call `new` while it allocates for us

void *allocate(size_t bytes, size_t alignment) {
  if (running && !inside) {
    inside = true;
    void *memory = pool.take(bytes);
    inside = false;
    return memory;
  }
  size_t unit = alignment < 16 ? 16 : alignment;
  void *memory = std::aligned_alloc(unit, (bytes + unit) / unit * unit);
  if (!memory)
    std::abort();
  return memory;
}

void release(void *memory) {
  if (memory && !pool.giveBack(memory))
    std::free(memory);
}

void *runTests(void *) {
  inside = false;
  static int result;
  result = RUN_ALL_TESTS();
  return &result;
}

} // namespace

void *operator new(size_t bytes) { return allocate(bytes, 16); }
void *operator new[](size_t bytes) { return allocate(bytes, 16); }
void *operator new(size_t bytes, std::align_val_t at) { return allocate(bytes, size_t(at)); }
void *operator new[](size_t bytes, std::align_val_t at) { return allocate(bytes, size_t(at)); }
void operator delete(void *p) noexcept { release(p); }
void operator delete[](void *p) noexcept { release(p); }
void operator delete(void *p, size_t) noexcept { release(p); }
void operator delete[](void *p, size_t) noexcept { release(p); }
void operator delete(void *p, std::align_val_t) noexcept { release(p); }
void operator delete[](void *p, std::align_val_t) noexcept { release(p); }
void operator delete(void *p, size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void *p, size_t, std::align_val_t) noexcept { release(p); }

int main(int argc, char **argv) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1); // before CUDA reads it
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests))
    return RUN_ALL_TESTS();
  int devices = 0;
  must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  constexpr size_t kStack = size_t(64) << 20;
  void *stack = nullptr;
  must(cudaHostAlloc(&stack, kStack, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
  running = true;
  pthread_attr_t attributes;
  pthread_t thread;
  void *result = nullptr;
  if (pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstack(&attributes, stack, kStack) != 0 ||
      pthread_create(&thread, &attributes, runTests, nullptr) != 0 ||
      pthread_join(thread, &result) != 0) {
    std::fprintf(stderr, "no thread with a stack of page-locked memory\n");
    return 1;
  }
  std::fflush(stdout);
  std::_Exit(*static_cast<int *>(result)); // without destructors: their order is arbitrary
}
