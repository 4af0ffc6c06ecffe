// CUDA's kernel language on a CPU, for tests: kernels compile as C++ and run thread by thread.
//
// A CUDA thread is a fiber. A block's fibers run one at a time on the operating-system thread that
// launches the kernel, and blocks run one after another unless setBlocksAtOnce asks for more, so a
// run is deterministic. A fiber yields only where CUDA synchronizes: __syncthreads, __syncwarp,
// shuffles and votes. Between two such points it runs alone and to completion, which is a legal but
// unfair order: for some thread, the work that a forgotten barrier should have waited for has not
// happened yet. A fair order would hide the mistake.
//
//     Order::Forward   the first warp runs as far ahead of the others as it can, then the next
//     Order::Reverse   the last warp first, in it the last lane
//     Order::Random    any thread that can run, blocks in any order, by a seed
//
// A launch throws LaunchError, with the kernel's name, the block and how many threads wait where,
// if threads wait at different barriers, some never arrive, or a shuffle reads a lane that does not
// take part, and for launches that CUDA refuses. Dynamic shared memory has exactly the requested
// size, so that AddressSanitizer detects accesses beyond it, and initially holds NaN.
//
// Tensor cores and asynchronous copies are in mma.h, wgmma.h and bulk.h. Not simulated: cooperative
// groups, races in the memory model.

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
#define __grid_constant__
/// One block runs at a time per operating-system thread.
#define __shared__ static thread_local

extern __thread uint3 threadIdx, blockIdx;
extern __thread uint3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace simt {

/// A launch's error, with a description of what is wrong.
class LaunchError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

enum class Order { Forward, Reverse, Random };

/// Sets the order of this thread's launches from now on.
void setOrder(Order order, uint64_t seed = 0);

/// Sets on how many operating-system threads the blocks of this thread's launches run from now on: 1 at first.
/// With several, blocks wait for each other where a GPU's do, in an order that nobody chooses.
void setBlocksAtOnce(int count);

/// Counts of launches on this thread, for tests of launch shapes.
struct Counters {
  int64_t launches, blocks, threads;
};
Counters counters();

struct Launch {
  const char *kernel;
  dim3 grid, block;
  size_t shared;
};

/// Returns why CUDA refuses a launch of this shape; empty if it does not.
std::string refusal(const Launch &launch);

/// Runs body() as every thread of the grid.
void runGrid(const Launch &launch, const std::function<void()> &body);

/// Runs kernel<<<grid, block, shared>>>(arguments...), to completion.
template <typename... P, typename... A>
void launch(const Launch &launch, void (*kernel)(P...), A &&...arguments) {
  std::tuple<P...> values(static_cast<A &&>(arguments)...);
  runGrid(launch, [&] { std::apply(kernel, values); });
}

unsigned char *dynamicShared();

/// A source position, by which barriers are distinguished.
struct Where {
  const char *what, *file;
  int line;
};
void syncThreads(Where where);
void syncWarp(unsigned mask, Where where);
/// Passes `bytes` (at most 16) of value to the lanes of the mask, and copies those of lane `source`
/// into result. `source` is the thread's own lane if the shuffle reads beyond the warp.
void exchange(unsigned mask, const void *value, void *result, size_t bytes, int source,
              Where where);
unsigned ballot(unsigned mask, bool vote, Where where);
int lane();

// Building blocks of mma.h, wgmma.h and bulk.h. The values that the lanes of a warp passed, valid until
// this lane passes the next one.
struct Given {
  const unsigned char (*values)[32][32];
  unsigned sets;
  const void *of(int lane) const { return values[sets >> lane & 1][lane]; }
};
/// Passes at most 32 bytes to all lanes of the warp, and waits for theirs.
Given give(const void *value, size_t bytes, Where where);
/// Ends the launch with a LaunchError.
void throwInKernel(const char *message);
/// Returns the number of blocks started on this operating-system thread, including this one.
int64_t blocksBegun();
/// Returns the thread's number in its block.
inline unsigned threadNumber() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
/// Returns the thread's own element of `all`, which has one per thread of a block, reset when a
/// block begins: an earlier launch may have ended with an error. Own has `int64_t block = -1`.
template <typename Own> Own &ownOfThread(std::vector<Own> &all) {
  unsigned thread = threadNumber(), count = blockDim.x * blockDim.y * blockDim.z;
  if (all.size() < count)
    all.resize(count); // once: threads that wait hold references
  Own &own = all[thread];
  if (own.block != blocksBegun()) {
    own = {};
    own.block = blocksBegun();
  }
  return own;
}
/// Sets a function that every finished thread calls from now on, on this operating-system thread.
void onThreadEnd(void (*check)());
/// Have all other threads of the block ended?
bool isLastThread();
/// Makes the thread wait until wakeThreads(event).
void waitFor(const void *event, Where where);
void wakeThreads(const void *event);
/// Waits until ready(), for another block. Ends the launch with a LaunchError if no other block is running, or none makes
/// ready() true in a minute.
void waitForOtherBlock(const std::function<bool()> &ready);
/// Lets blocks that run at once overtake this one, now and then.
void letOtherBlocksRun();
/// Sets a function that is called when no thread of the block can run and one waits for an event: it performs
/// what may happen late, and returns whether something has.
void onStandstill(bool (*perform)());

/// Does an asynchronous operation happen when it is issued? Otherwise it happens when it is waited
/// for.
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

// A fiber is not interrupted, and each operating-system thread has its own grid's memory.
template <typename V> V atomicAdd(V *at, V value) {
  V before = *at;
  *at = before + value;
  return before;
}
template <typename V> V atomicMax(V *at, V value) {
  V before = *at;
  *at = before < value ? value : before;
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
/// Selects four of the eight bytes of y and x, by the digits of `selector`.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  uint64_t bytes = uint64_t(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= unsigned(bytes >> ((selector >> (4 * i) & 7) * 8) & 0xff) << (8 * i);
  return result;
}
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float __expf(float x) { return expf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

#endif // PARTITA_TEST_SIMT_H
