// CUDA's kernel language on a CPU, for tests: kernels compile as C++ and run thread by thread.
//
// A CUDA thread is a fiber. A block's fibers run one at a time on the operating system's thread
// that launches the kernel, blocks one after another, so a run is deterministic. A fiber gives way
// only where CUDA synchronizes: __syncthreads, __syncwarp, shuffles and votes. Between two such
// points it runs alone and to the end, which is a legal order and an unfair one: what a forgotten
// barrier would have waited for has, for some thread, not happened yet. A fair order would hide it.
//
//     Order::Forward   the first warp runs as far ahead of the others as it can, then the next
//     Order::Reverse   the last warp first, in it the last lane
//     Order::Random    any thread that can run, blocks in any order, by a seed
//
// A launch throws LaunchError, with the kernel's name, the block and how many threads wait where,
// when threads wait at different barriers, when some never come, when a shuffle reads a lane that
// does not take part, and for launches that CUDA refuses. Dynamic shared memory is of exactly the
// size asked for, so that AddressSanitizer sees what lies beyond, and holds NaN at first.
//
// Tensor cores and asynchronous copies are in mma.h and wgmma.h. Not here: cooperative groups, races in the
// memory model.

#ifndef PARTITA_TEST_SIMT_H
#define PARTITA_TEST_SIMT_H

#include "simt/vector_types.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

//===-- The language ------------------------------------------------------------------------===//

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
/// One block runs at a time per thread of the operating system.
#define __shared__ static thread_local

extern __thread uint3 threadIdx, blockIdx;
extern __thread uint3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace simt {

/// What is wrong with a launch.
class LaunchError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

enum class Order { Forward, Reverse, Random };

/// The order that this thread's launches run in from now on.
void setOrder(Order order, uint64_t seed = 0);

/// What launches have done on this thread, for tests of launch shapes.
struct Counters {
  int64_t launches, blocks, threads;
};
Counters counters();

struct Launch {
  const char *kernel;
  dim3 grid, block;
  size_t shared;
};

/// Why CUDA refuses a launch of this shape; empty: it does not.
std::string refusal(const Launch &launch);

/// Runs body() as every thread of the grid.
void runGrid(const Launch &launch, const std::function<void()> &body);

/// kernel<<<grid, block, shared>>>(arguments...), complete when it returns.
template <typename... P, typename... A>
void launch(const Launch &launch, void (*kernel)(P...), A &&...arguments) {
  std::tuple<P...> values(static_cast<A &&>(arguments)...);
  runGrid(launch, [&] { std::apply(kernel, values); });
}

unsigned char *dynamicShared();

/// A source position that barriers are told apart by.
struct Where {
  const char *what, *file;
  int line;
};
void syncThreads(Where where);
void syncWarp(unsigned mask, Where where);
/// Gives `bytes` (at most 16) of value to the lanes of the mask; copies those of lane `source` into
/// result. `source` is the thread's own where the shuffle reads beyond the warp.
void exchange(unsigned mask, const void *value, void *result, size_t bytes, int source,
              Where where);
unsigned ballot(unsigned mask, bool vote, Where where);
int lane();

// What mma.h and wgmma.h are made of.
/// What the lanes of a warp gave, until this one gives again.
struct Given {
  const unsigned char (*values)[32][32];
  unsigned sets;
  const void *of(int lane) const { return values[sets >> lane & 1][lane]; }
};
/// Gives at most 32 bytes to all lanes of the warp, and waits for theirs.
Given give(const void *value, size_t bytes, Where where);
/// Ends the launch with a LaunchError.
void throwInKernel(const char *message);
/// Blocks that have begun on this thread of the operating system, this one included.
int64_t blocksBegun();
/// Of the thread, in its block.
inline unsigned threadNumber() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
/// The thread's own of what all threads of a block have, made anew when a block begins: a launch may
/// have ended with an error. Own has `int64_t block = -1`.
template <typename Own> Own &ownOfThread(std::vector<Own> &all) {
  unsigned thread = threadNumber();
  if (all.size() <= thread)
    all.resize(thread + 1);
  Own &own = all[thread];
  if (own.block != blocksBegun()) {
    own = {};
    own.block = blocksBegun();
  }
  return own;
}
/// Called by every thread that is done, from now on, on this thread of the operating system.
void onThreadEnd(void (*check)());
/// Does an asynchronous operation happen when it is issued, or when it is waited for?
bool asynchronousNow();

template <typename V> V shuffle(unsigned mask, V value, int source, Where where) {
  static_assert(sizeof(V) <= 16 && std::is_trivially_copyable_v<V>);
  V result = value;
  exchange(mask, &value, &result, sizeof(V), source, where);
  return result;
}
template <typename V> V shuffleIndex(unsigned mask, V value, int source, int width, Where where) {
  return shuffle(mask, value, lane() / width * width + (source % width + width) % width, where);
}
template <typename V> V shuffleXor(unsigned mask, V value, int with, int width, Where where) {
  int source = lane() ^ with;
  return shuffle(mask, value, source / width > lane() / width ? lane() : source, where);
}
template <typename V> V shuffleDown(unsigned mask, V value, int by, int width, Where where) {
  return shuffle(mask, value, lane() % width + by < width ? lane() + by : lane(), where);
}
template <typename V> V shuffleUp(unsigned mask, V value, int by, int width, Where where) {
  return shuffle(mask, value, lane() % width >= by ? lane() - by : lane(), where);
}

} // namespace simt

#define SIMT_WHERE(what) (::simt::Where{what, __FILE__, __LINE__})
#define __syncthreads() ::simt::syncThreads(SIMT_WHERE("__syncthreads"))
#define __syncwarp() ::simt::syncWarp(0xffffffffu, SIMT_WHERE("__syncwarp"))
#define __shfl_sync(mask, value, source)                                                           \
  ::simt::shuffleIndex(mask, value, source, 32, SIMT_WHERE("__shfl_sync"))
#define __shfl_xor_sync(mask, value, with)                                                         \
  ::simt::shuffleXor(mask, value, with, 32, SIMT_WHERE("__shfl_xor_sync"))
#define __shfl_down_sync(mask, value, by)                                                          \
  ::simt::shuffleDown(mask, value, by, 32, SIMT_WHERE("__shfl_down_sync"))
#define __shfl_up_sync(mask, value, by)                                                            \
  ::simt::shuffleUp(mask, value, by, 32, SIMT_WHERE("__shfl_up_sync"))
#define __ballot_sync(mask, vote) ::simt::ballot(mask, vote, SIMT_WHERE("__ballot_sync"))
#define __any_sync(mask, vote) (::simt::ballot(mask, vote, SIMT_WHERE("__any_sync")) != 0)
#define __all_sync(mask, vote) (::simt::ballot(mask, !(vote), SIMT_WHERE("__all_sync")) == 0)

//===-- Functions ---------------------------------------------------------------------------===//

// A fiber is not interrupted, and of several threads each has its grid's memory to itself.
template <typename V> V atomicAdd(V *at, V value) {
  V before = *at;
  *at = before + value;
  return before;
}
template <typename V> V atomicCAS(V *at, V expected, V value) {
  V before = *at;
  if (before == expected)
    *at = value;
  return before;
}
inline void __threadfence() {}
inline void __threadfence_system() {}
template <typename V> V __ldg(const V *at) { return *at; }
template <typename V> V __ldcs(const V *at) { return *at; }
template <typename V> void __stcs(V *at, V value) { *at = value; }
inline float __int_as_float(int bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float __expf(float x) { return expf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

#endif // PARTITA_TEST_SIMT_H
