// Helpers for the tests of runtime/cuda: streams with exactly the announced scratch memory, the
// schedules that a kernel is run in, tensors of any storage type and alignment.

#ifndef PARTITA_TEST_RUNTIME_CUDA_SIMULATED_H
#define PARTITA_TEST_RUNTIME_CUDA_SIMULATED_H

#include "half_reference.h"
#include "partita_rt/cuda/kernels.h"
#include "simt/simt.h"

#include <cuda_runtime.h>
#include <memory>
#include <new>

namespace partita_rt::cuda {

/// Scratch memory of exactly this many bytes, initially NaN. Memory that kernels write is on the
/// heap or the stack: test/gpu runs the tests on a GPU, which can access nothing else.
struct SimulatedStream : Stream {
  const std::unique_ptr<Fault> ownFaults{new Fault{}};
  Fault &faults = *ownFaults;
  explicit SimulatedStream(int64_t bytes = 0)
      : memory(new (std::align_val_t(16)) unsigned char[size_t(bytes)]) {
    std::memset(memory.get(), 0xff, size_t(bytes));
    fault = &faults;
    scratch = memory.get();
    scratchBytes = bytes;
  }

private:
  struct Delete {
    void operator()(unsigned char *p) const { operator delete[](p, std::align_val_t(16)); }
  };
  std::unique_ptr<unsigned char[], Delete> memory;
};

/// Calls body() with every order of threads and blocks, and reports the order in which an
/// expectation failed.
template <typename Body> void inEveryOrder(Body body) {
  struct Schedule {
    simt::Order order;
    uint64_t seed;
    const char *name;
  };
  for (Schedule each : {Schedule{simt::Order::Forward, 0, "forward"},
                        {simt::Order::Reverse, 0, "reverse"},
                        {simt::Order::Random, 1, "random"}}) {
    SCOPED_TRACE(each.name);
    simt::setOrder(each.order, each.seed);
    body();
  }
  simt::setOrder(simt::Order::Forward);
}

template <typename T> struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U> AlignedAllocator(const AlignedAllocator<U> &) {}
  T *allocate(size_t n) {
    return static_cast<T *>(operator new(n * sizeof(T), std::align_val_t(16)));
  }
  void deallocate(T *p, size_t) { operator delete(p, std::align_val_t(16)); }
  bool operator==(const AlignedAllocator &) const { return true; }
  bool operator!=(const AlignedAllocator &) const { return false; }
};

/// Device memory of n elements, initialized to `values`.
template <typename T> struct OnDevice {
  T *data = nullptr;
  explicit OnDevice(const std::vector<T> &values) : n(values.size()) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void **>(&data), n * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data, values.data(), n * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~OnDevice() { cudaFree(data); }
  std::vector<T> values() const {
    std::vector<T> host(n);
    EXPECT_EQ(cudaMemcpy(host.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
  }

private:
  size_t n;
};

/// n elements of T, the first one `offset` elements after a 16-byte boundary, with a margin on both
/// sides that must not change.
template <typename T> class Tensor {
public:
  Tensor(int64_t n, int64_t offset = 0)
      : memory(size_t(n + 2 * kMargin + offset), filler()), offset(offset), n(n) {}
  Tensor(const Floats &values, int64_t offset = 0) : Tensor(int64_t(values.size()), offset) {
    for (int64_t i = 0; i < n; ++i)
      data()[i] = T(values[size_t(i)]);
  }
  T *data() { return memory.data() + kMargin + offset; }
  const T *in() const { return memory.data() + kMargin + offset; }
  std::vector<T> values() const { return std::vector<T>(in(), in() + n); }
  Floats floats() const { return Floats(in(), in() + n); }
  /// Are the margins unchanged?
  bool marginsKept() const {
    for (int64_t i = 0; i < int64_t(memory.size()); ++i)
      if ((i < kMargin + offset || i >= kMargin + offset + n) &&
          std::memcmp(&memory[size_t(i)], &memory[0], sizeof(T)) != 0)
        return false;
    return true;
  }

private:
  static constexpr int64_t kMargin = 16;
  static T filler() {
    T value;
    std::memset(&value, 0x5a, sizeof(T));
    return value;
  }
  std::vector<T, AlignedAllocator<T>> memory;
  int64_t offset, n;
};

/// Returns small integers, whose products have exact sums in every order and storage type.
inline Floats integers(int64_t n, const char *name) {
  Floats values = randomFloats(n, name, 2.0);
  for (float &each : values)
    each = std::max(-4.0f, std::min(4.0f, std::round(each)));
  return values;
}

using StorageTypes = testing::Types<float, Half, BFloat16>;

/// Bit for bit, floats too; margins untouched.
#define EXPECT_BITS(tensor, expected)                                                              \
  do {                                                                                             \
    EXPECT_EQ(difference((tensor).values(), expected), -1);                                        \
    EXPECT_TRUE((tensor).marginsKept());                                                           \
  } while (false)
#define EXPECT_NEAR_ALL(tensor, expected, tolerance)                                               \
  do {                                                                                             \
    EXPECT_CLOSE((tensor).floats(), widen(expected), tolerance);                                   \
    EXPECT_TRUE((tensor).marginsKept());                                                           \
  } while (false)

/// EXPECT_BITS in the simulation, EXPECT_NEAR_ALL on a GPU, whose library may take a different
/// algorithm for the same sums in another shape or result type.
#if defined(PARTITA_TEST_ON_GPU)
#define EXPECT_BITS_OR_NEAR EXPECT_NEAR_ALL
#else
#define EXPECT_BITS_OR_NEAR(tensor, expected, tolerance) EXPECT_BITS(tensor, expected)
#endif

} // namespace partita_rt::cuda

#endif // PARTITA_TEST_RUNTIME_CUDA_SIMULATED_H
