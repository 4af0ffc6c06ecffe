// The scheduler of simt.h: which thread of a block runs next, and what those that wait wait for.

#include "simt/simt.h"

#include "simt/fiber.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

__thread uint3 threadIdx, blockIdx;
__thread uint3 blockDim, gridDim;

namespace simt {

namespace {

constexpr int64_t kMostThreads = 1024, kMostShared = 227 * 1024; // of a block, on sm_90

enum class State : uint8_t { Ready, AtWarp, AtBlock, Done };

struct Thread {
  uint3 index;
  State state;
  bool odd;      ///< which of the warp's two sets of values its next exchange uses
  unsigned sets; ///< which ones the lanes have used that it last exchanged values with
  unsigned mask;
  Where where;
};

/// Values in exchange. Two sets: a lane may be one exchange ahead of another that has not read yet,
/// and not two.
struct Warp {
  alignas(16) unsigned char values[2][32][32];
};

/// What is running on a thread of the operating system.
struct Machine {
  Order order = Order::Forward;
  uint64_t random = 0;
  Counters done{};
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<unsigned> ready; ///< per warp, its lanes that can run
  const Launch *launch = nullptr;
  const std::function<void()> *body = nullptr;
  Context main;
  int current = -1, live = 0;
  int64_t begun = 0; ///< blocks
  std::unique_ptr<unsigned char[]> shared;
  std::string error; ///< found by a fiber, thrown by the scheduler

  uint64_t draw() { // xorshift64*
    random ^= random >> 12;
    random ^= random << 25;
    random ^= random >> 27;
    return random * 0x2545F4914F6CDD1Dull;
  }
};

thread_local Machine machine;

std::string text(const Where &where) {
  const char *slash = std::strrchr(where.file, '/');
  return std::string(where.what) + " (" + (slash ? slash + 1 : where.file) + ":" +
         std::to_string(where.line) + ")";
}

std::string text(unsigned x, unsigned y, unsigned z) {
  return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

[[noreturn]] void raise(const std::string &message) {
  throw LaunchError(std::string(machine.launch->kernel) + ": " + message);
}

[[noreturn]] void raiseInBlock(const std::string &message) {
  raise("block " + text(blockIdx.x, blockIdx.y, blockIdx.z) + ": " + message);
}

void setReady(int thread) {
  machine.threads[size_t(thread)].state = State::Ready;
  machine.ready[size_t(thread / 32)] |= 1u << (thread % 32);
}

/// "40 of 64 live threads wait at __syncthreads (x.cu:3), 24 at __shfl_xor_sync (x.cu:9)".
std::string waiting() {
  std::map<std::string, int> counts;
  for (const Thread &thread : machine.threads)
    if (thread.state != State::Done)
      ++counts[text(thread.where)];
  std::string message;
  for (auto &[where, count] : counts)
    message += message.empty() ? std::to_string(count) + " of " + std::to_string(machine.live) +
                                     " live threads wait at " + where
                               : ", " + std::to_string(count) + " at " + where;
  return message;
}

bool same(const Where &a, const Where &b) {
  auto sameText = [](const char *x, const char *y) { return x == y || std::strcmp(x, y) == 0; };
  return a.line == b.line && sameText(a.file, b.file) && sameText(a.what, b.what);
}

/// The thread has come to a barrier of its warp: lets the lanes go if it was the last of them.
void arriveAtWarp(int number) {
  const Thread &thread = machine.threads[size_t(number)];
  int first = number / 32 * 32;
  unsigned sets = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(thread.mask >> lane & 1))
      continue;
    if (first + lane >= int(machine.threads.size()))
      raiseInBlock("the mask of " + text(thread.where) + " has lanes that the block does not have");
    const Thread &other = machine.threads[size_t(first + lane)];
    if (other.state != State::AtWarp || other.mask != thread.mask)
      return; // not there yet, or never: then nobody is ready at last
    if (!same(other.where, thread.where))
      raiseInBlock("lanes of one warp wait at different places: " + waiting());
    sets |= other.odd ? 0 : 1u << lane; // it has been turned since
  }
  for (int lane = 0; lane < 32; ++lane)
    if (thread.mask >> lane & 1) {
      machine.threads[size_t(first + lane)].sets = sets;
      setReady(first + lane);
    }
}

/// All threads wait or are done.
void releaseBlock() {
  const Thread *first = nullptr;
  for (const Thread &thread : machine.threads) {
    if (thread.state == State::AtWarp)
      raiseInBlock("deadlock: " + waiting());
    if (thread.state == State::Done)
      continue;
    if (first && !same(first->where, thread.where))
      raiseInBlock("threads wait at different barriers: " + waiting());
    first = &thread;
  }
  if (machine.live < int(machine.threads.size()) && first)
    raiseInBlock("divergent barrier: " + waiting() + ", " +
                 std::to_string(int(machine.threads.size()) - machine.live) + " have returned");
  for (size_t i = 0; i < machine.threads.size(); ++i)
    setReady(int(i));
}

/// The warp that runs next; -1: none can. `last`: the one that ran.
int nextWarp(int last) {
  int warps = int(machine.ready.size());
  if (machine.order == Order::Random) {
    int start = int(machine.draw() % uint64_t(warps));
    for (int i = 0; i < warps; ++i)
      if (machine.ready[size_t((start + i) % warps)])
        return (start + i) % warps;
    return -1;
  }
  if (last >= 0 && machine.ready[size_t(last)])
    return last;
  for (int i = 0; i < warps; ++i) {
    int warp = machine.order == Order::Reverse ? warps - 1 - i : i;
    if (machine.ready[size_t(warp)])
      return warp;
  }
  return -1;
}

int nextLane(unsigned ready) {
  if (machine.order == Order::Forward)
    return __builtin_ctz(ready);
  if (machine.order == Order::Reverse)
    return 31 - __builtin_clz(ready);
  for (uint64_t skip = machine.draw() % uint64_t(__builtin_popcount(ready)); skip > 0; --skip)
    ready &= ready - 1;
  return __builtin_ctz(ready);
}

void enter() {
  Fiber &fiber = *machine.fibers[size_t(machine.current)];
  fiber.entered(machine.main);
  (*machine.body)();
  machine.threads[size_t(machine.current)].state = State::Done;
  machine.fibers[size_t(machine.current)]->finish(machine.main);
}

void prepareBlock() {
  ++machine.begun;
  const dim3 &block = machine.launch->block;
  unsigned count = block.x * block.y * block.z;
  while (machine.fibers.size() < count)
    machine.fibers.push_back(std::make_unique<Fiber>());
  machine.threads.assign(count, {});
  machine.warps.assign((count + 31) / 32, {});
  machine.ready.assign(machine.warps.size(), 0);
  machine.live = int(count);
  for (unsigned i = 0; i < count; ++i) {
    machine.threads[i].index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    machine.fibers[i]->start(enter);
    setReady(int(i));
  }
  std::memset(machine.shared.get(), 0xff, machine.launch->shared); // NaN
}

void runBlock() {
  prepareBlock();
  for (int warp = -1; machine.live > 0;) {
    warp = nextWarp(warp);
    if (warp < 0) {
      releaseBlock();
      continue;
    }
    int lane = nextLane(machine.ready[size_t(warp)]);
    machine.current = warp * 32 + lane;
    machine.ready[size_t(warp)] &= ~(1u << lane);
    Thread &thread = machine.threads[size_t(machine.current)];
    threadIdx = thread.index;
    machine.fibers[size_t(machine.current)]->resume(machine.main);
    if (!machine.error.empty())
      raiseInBlock(std::exchange(machine.error, ""));
    if (thread.state == State::Done)
      --machine.live;
    else if (thread.state == State::AtWarp)
      arriveAtWarp(machine.current);
  }
}

void wait(State state, unsigned mask, Where where) {
  int number = machine.current;
  Thread &thread = machine.threads[size_t(number)];
  thread.state = state;
  thread.mask = mask;
  thread.where = where;
  machine.fibers[size_t(number)]->suspend(machine.main);
}

/// Waits until the lanes of the mask have given their values.
void meet(unsigned mask, const void *value, size_t bytes, Where where) {
  int number = machine.current;
  Thread &thread = machine.threads[size_t(number)];
  Warp &warp = machine.warps[size_t(number / 32)];
  if (!(mask >> (number % 32) & 1))
    machine.error = text(where) + " by a lane that its mask does not have";
  std::memcpy(warp.values[thread.odd][number % 32], value, bytes);
  thread.odd = !thread.odd;
  wait(State::AtWarp, mask, where);
}

Given given() {
  unsigned sets = machine.threads[size_t(machine.current)].sets;
  return {machine.warps[size_t(machine.current / 32)].values, sets};
}

/// The block's number in the grid as the `i`-th to run.
uint64_t blockNumber(uint64_t i, uint64_t count) {
  if (machine.order == Order::Reverse)
    return count - 1 - i;
  return i;
}

} // namespace

void setOrder(Order order, uint64_t seed) {
  machine.order = order;
  machine.random = seed * 2 + 0x9E3779B97F4A7C15ull;
}

Counters counters() { return machine.done; }

std::string refusal(const Launch &launch) {
  const dim3 &g = launch.grid, &b = launch.block;
  int64_t threads = int64_t(b.x) * b.y * b.z;
  if (threads < 1 || threads > kMostThreads || b.z > 64)
    return "blocks of " + text(b.x, b.y, b.z) + " threads";
  if (g.x < 1 || g.y < 1 || g.z < 1 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
    return "a grid of " + text(g.x, g.y, g.z) + " blocks";
  if (launch.shared > size_t(kMostShared))
    return std::to_string(launch.shared) + " bytes of shared memory";
  return "";
}

void runGrid(const Launch &launch, const std::function<void()> &body) {
  machine.launch = &launch;
  machine.body = &body;
  machine.error.clear();
  if (std::string why = refusal(launch); !why.empty())
    raise(why);
  machine.shared.reset(new unsigned char[launch.shared]);
  gridDim = {launch.grid.x, launch.grid.y, launch.grid.z};
  blockDim = {launch.block.x, launch.block.y, launch.block.z};
  uint64_t blocks = uint64_t(gridDim.x) * gridDim.y * gridDim.z;
  std::vector<uint32_t> shuffled;
  if (machine.order == Order::Random)
    for (uint32_t i = 0; i < blocks; ++i) {
      shuffled.push_back(i);
      std::swap(shuffled[i], shuffled[machine.draw() % (i + 1)]);
    }
  for (uint64_t i = 0; i < blocks; ++i) {
    uint64_t number = shuffled.empty() ? blockNumber(i, blocks) : shuffled[i];
    blockIdx = {unsigned(number % gridDim.x), unsigned(number / gridDim.x % gridDim.y),
                unsigned(number / gridDim.x / gridDim.y)};
    runBlock();
  }
  ++machine.done.launches;
  machine.done.blocks += int64_t(blocks);
  machine.done.threads += int64_t(blocks) * blockDim.x * blockDim.y * blockDim.z;
}

unsigned char *dynamicShared() { return machine.shared.get(); }
int lane() { return machine.current % 32; }

void syncThreads(Where where) { wait(State::AtBlock, 0, where); }
void syncWarp(unsigned mask, Where where) { wait(State::AtWarp, mask, where); }

void exchange(unsigned mask, const void *value, void *result, size_t bytes, int source,
              Where where) {
  meet(mask, value, bytes, where);
  if (source < 0 || source >= 32 || !(mask >> source & 1)) {
    machine.error =
        text(where) + " reads lane " + std::to_string(source) + ", which its mask does not have";
    wait(State::AtWarp, mask, where);
  }
  std::memcpy(result, given().of(source), bytes);
}

unsigned ballot(unsigned mask, bool vote, Where where) {
  unsigned mine = vote, votes = 0;
  meet(mask, &mine, sizeof(mine), where);
  for (int lane = 0; lane < 32; ++lane) {
    unsigned theirs;
    std::memcpy(&theirs, given().of(lane), sizeof(theirs));
    votes |= (mask >> lane & 1) && theirs ? 1u << lane : 0;
  }
  return votes;
}

Given give(const void *value, size_t bytes, Where where) {
  meet(0xffffffffu, value, bytes, where);
  return given();
}

void throwInKernel(const char *message) {
  machine.error = message;
  wait(State::AtBlock, 0, {message, "", 0});
}

int64_t blocksBegun() { return machine.begun; }

bool asynchronousNow() {
  return machine.order == Order::Reverse || (machine.order == Order::Random && machine.draw() % 2);
}

} // namespace simt
