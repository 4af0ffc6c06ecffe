// The scheduler of a block (simt.h): chooses the thread that runs next, and releases barriers.

#include "simt/simt.h"

#include "simt/block.h"
#include "simt/fiber.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

__thread uint3 threadIdx, blockIdx;
__thread uint3 blockDim, gridDim;

namespace simt {

namespace {

enum class State : uint8_t { Ready, AtWarp, AtBlock, AtEvent, Done };

struct Thread {
  uint3 index;
  State state;
  bool odd;      ///< which of the warp's two sets of values its next exchange uses
  unsigned sets; ///< those that the lanes of its last exchange have used
  unsigned mask;
  Where where;
  const void *event; ///< what it waits for, AtEvent
  Fiber *fiber;      ///< null before its first step and after its last
};

/// Values in exchange. Two sets suffice: a lane may be one exchange ahead of another that has not
/// read yet, but not two.
struct Warp {
  unsigned lanes;  ///< that the block has
  unsigned ready;  ///< that can run
  unsigned atWarp; ///< that wait for other lanes
  alignas(16) unsigned char values[2][32][32];
};

/// The state of one operating-system thread.
struct Machine {
  Order order = Order::Forward;
  uint64_t random = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber *> idle; ///< without a thread
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  const Launch *launch = nullptr;
  const std::function<void()> *body = nullptr;
  Context main;
  Fiber *running = nullptr;
  int current = -1, live = 0;
  int64_t begun = 0; ///< blocks started
  std::vector<void (*)()> threadEnd;
  std::vector<bool (*)()> standstill;
  std::unique_ptr<unsigned char[]> shared;
  std::string error; ///< found by a fiber, thrown by main

  Machine() {
    const char *name = std::getenv("PARTITA_SIMULATED_ORDER");
    const char *seed = std::getenv("PARTITA_SIMULATED_SEED");
    if (!name)
      return;
    if (std::strcmp(name, "reverse") == 0)
      order = Order::Reverse;
    else if (std::strcmp(name, "random") == 0)
      order = Order::Random;
    else if (std::strcmp(name, "forward") != 0) {
      std::fprintf(stderr, "PARTITA_SIMULATED_ORDER=%s is not forward, reverse or random\n", name);
      std::exit(2);
    }
    setSeed(seed ? std::strtoull(seed, nullptr, 10) : 1);
  }
  void setSeed(uint64_t seed) { random = seed * 2 + 0x9E3779B97F4A7C15ull; }
  uint64_t draw() { // xorshift64*
    random ^= random >> 12;
    random ^= random << 25;
    random ^= random >> 27;
    return (random * 0x2545F4914F6CDD1Dull) >> 16;
  }
};

__thread Machine *machine = nullptr;

/// Created when an operating-system thread first asks, and reached through a pointer afterwards: a
/// thread_local object has a check at every access.
Machine &ownMachine() {
  static thread_local Machine own;
  return *(machine = &own);
}

std::string text(const Where &where) {
  const char *slash = std::strrchr(where.file, '/');
  return std::string(where.what) + " (" + (slash ? slash + 1 : where.file) + ":" +
         std::to_string(where.line) + ")";
}

std::string text(unsigned x, unsigned y, unsigned z) {
  return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

[[noreturn]] void raise(const std::string &message) {
  throw LaunchError(std::string(machine->launch->kernel) + ": " + message);
}

/// Sets the error that main throws as soon as it runs.
void fail(const std::string &message) {
  machine->error = "block " + text(blockIdx.x, blockIdx.y, blockIdx.z) + ": " + message;
}

void setReady(int number) {
  Warp &warp = machine->warps[size_t(number / 32)];
  machine->threads[size_t(number)].state = State::Ready;
  warp.ready |= 1u << (number % 32);
  warp.atWarp &= ~(1u << (number % 32));
}

/// "40 of 64 live threads wait at __syncthreads (x.cu:3), 24 at __shfl_xor_sync (x.cu:9)".
std::string waiting() {
  std::map<std::string, int> counts;
  for (const Thread &thread : machine->threads)
    if (thread.state != State::Done)
      ++counts[text(thread.where)];
  std::string message;
  for (auto &[where, count] : counts)
    message += message.empty() ? std::to_string(count) + " of " + std::to_string(machine->live) +
                                     " live threads wait at " + where
                               : ", " + std::to_string(count) + " at " + where;
  return message;
}

bool same(const Where &a, const Where &b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0) &&
         (a.what == b.what || std::strcmp(a.what, b.what) == 0);
}

/// Records that the thread has arrived at a barrier of its warp; releases the lanes if it was the
/// last of them.
void arriveAtWarp(int number) {
  const Thread &thread = machine->threads[size_t(number)];
  Warp &warp = machine->warps[size_t(number / 32)];
  unsigned mask = thread.mask;
  warp.atWarp |= 1u << (number % 32);
  if (mask & ~warp.lanes)
    return fail("the mask of " + text(thread.where) + " has lanes that the block does not have");
  if ((warp.atWarp & mask) != mask)
    return;
  unsigned sets = 0;
  int first = number / 32 * 32;
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    const Thread &other = machine->threads[size_t(first + __builtin_ctz(rest))];
    if (other.mask != mask)
      return; // it may still come, or never: then no thread is ready in the end
    if (!same(other.where, thread.where))
      return fail("lanes of one warp wait at different places: " + waiting());
    sets |= other.odd ? 0 : 1u << __builtin_ctz(rest); // its `odd` has been flipped since
  }
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    machine->threads[size_t(first + lane)].sets = sets;
    setReady(first + lane);
  }
}

/// Releases the block's barrier: all threads wait or are done.
void releaseBlock() {
  const Thread *first = nullptr;
  for (const Thread &thread : machine->threads) {
    if (thread.state == State::AtWarp || thread.state == State::AtEvent)
      return fail("deadlock: " + waiting());
    if (thread.state == State::Done)
      continue;
    if (first && !same(first->where, thread.where))
      return fail("threads wait at different barriers: " + waiting());
    first = &thread;
  }
  if (machine->live < int(machine->threads.size()) && first)
    return fail("divergent barrier: " + waiting() + ", " +
                std::to_string(int(machine->threads.size()) - machine->live) + " have returned");
  for (size_t i = 0; i < machine->threads.size(); ++i)
    setReady(int(i));
}

/// Returns the next warp to run; -1: none can. `last`: the one that ran.
int nextWarp(int last) {
  int warps = int(machine->warps.size());
  if (machine->order == Order::Random) {
    int start = int(machine->draw() % uint64_t(warps));
    for (int i = 0; i < warps; ++i)
      if (machine->warps[size_t((start + i) % warps)].ready)
        return (start + i) % warps;
    return -1;
  }
  if (last >= 0 && machine->warps[size_t(last)].ready)
    return last;
  for (int i = 0; i < warps; ++i) {
    int warp = machine->order == Order::Reverse ? warps - 1 - i : i;
    if (machine->warps[size_t(warp)].ready)
      return warp;
  }
  return -1;
}

int nextLane(unsigned ready) {
  if (machine->order == Order::Forward)
    return __builtin_ctz(ready);
  if (machine->order == Order::Reverse)
    return 31 - __builtin_clz(ready);
  for (uint64_t skip = machine->draw() % uint64_t(__builtin_popcount(ready)); skip > 0; --skip)
    ready &= ready - 1;
  return __builtin_ctz(ready);
}

/// Performs what may happen late, if a thread waits for such a thing. Returns whether something has.
bool performLate() {
  if (std::none_of(machine->threads.begin(), machine->threads.end(),
                   [](const Thread &thread) { return thread.state == State::AtEvent; }))
    return false;
  bool any = false;
  for (bool (*perform)() : machine->standstill)
    any |= perform();
  return any;
}

/// Chooses the thread that runs next. Returns false if the block is complete, or there is an error.
bool choose() {
  int last = machine->current < 0 ? -1 : machine->current / 32;
  for (;;) {
    if (!machine->error.empty() || machine->live == 0)
      return false;
    int number = nextWarp(last);
    if (number < 0) {
      if (machine->standstill.empty() || !performLate())
        releaseBlock();
      last = -1;
      continue;
    }
    Warp &warp = machine->warps[size_t(number)];
    int lane = nextLane(warp.ready);
    warp.ready &= ~(1u << lane);
    machine->current = number * 32 + lane;
    threadIdx = machine->threads[size_t(machine->current)].index;
    return true;
  }
}

/// The function of every fiber: runs threads from their beginning, one after another, as long as
/// they end on this fiber and the next one has not started elsewhere. A block whose threads never
/// wait needs one fiber, and no switch.
void runThreads();

Fiber *idleFiber() {
  if (machine->idle.empty()) {
    machine->fibers.push_back(std::make_unique<Fiber>(runThreads));
    return machine->fibers.back().get();
  }
  Fiber *fiber = machine->idle.back();
  machine->idle.pop_back();
  return fiber;
}

/// Switches to the chosen thread, or back to main.
void leave(Context &here, bool chosen) {
  if (!chosen) {
    switchTo(here, machine->main);
    return;
  }
  Thread &next = machine->threads[size_t(machine->current)];
  if (!next.fiber)
    next.fiber = idleFiber();
  machine->running = next.fiber;
  switchTo(here, next.fiber->context);
}

void runThreads() {
  Fiber *self = machine->running;
  entered();
  for (;;) {
    machine->threads[size_t(machine->current)].fiber = self;
    (*machine->body)();
    for (void (*check)() : machine->threadEnd)
      check();
    Thread &thread = machine->threads[size_t(machine->current)];
    thread.state = State::Done;
    thread.fiber = nullptr;
    --machine->live;
    bool chosen = choose();
    if (chosen && !machine->threads[size_t(machine->current)].fiber)
      continue;
    machine->idle.push_back(self);
    leave(self->context, chosen);
  }
}

/// Makes the thread wait: others run until it may continue.
void wait(State state, unsigned mask, Where where) {
  int number = machine->current;
  Thread &thread = machine->threads[size_t(number)];
  thread.state = state;
  thread.mask = mask;
  thread.where = where;
  if (state == State::AtWarp)
    arriveAtWarp(number);
  bool chosen = choose();
  if (chosen && machine->current == number)
    return;
  leave(thread.fiber->context, chosen);
}

/// Prepares for the blocks of a launch, which all have one shape.
void prepareLaunch() {
  const dim3 &block = machine->launch->block;
  unsigned count = block.x * block.y * block.z;
  machine->threads.assign(count, {});
  machine->warps.resize((count + 31) / 32);
  for (unsigned i = 0; i < count; ++i)
    machine->threads[i].index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
}

/// Makes all threads of a block ready to begin.
void readyThreads() {
  machine->live = int(machine->threads.size());
  machine->current = -1;
  for (Thread &thread : machine->threads) {
    thread.state = State::Ready;
    thread.odd = false;
  }
  for (size_t i = 0; i < machine->warps.size(); ++i) {
    Warp &warp = machine->warps[i];
    size_t lanes = std::min<size_t>(32, machine->threads.size() - 32 * i);
    warp.lanes = warp.ready = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.atWarp = 0;
  }
  if (machine->launch->shared)
    std::memset(machine->shared.get(), 0xff, machine->launch->shared); // NaN
}

/// Waits until the lanes of the mask have passed their values.
void meet(unsigned mask, const void *value, size_t bytes, Where where) {
  int number = machine->current;
  Thread &thread = machine->threads[size_t(number)];
  Warp &warp = machine->warps[size_t(number / 32)];
  if (!(mask >> (number % 32) & 1))
    fail(text(where) + " by a lane that its mask does not have");
  std::memcpy(warp.values[thread.odd][number % 32], value, bytes);
  thread.odd = !thread.odd;
  wait(State::AtWarp, mask, where);
}

Given given() {
  unsigned sets = machine->threads[size_t(machine->current)].sets;
  return {machine->warps[size_t(machine->current / 32)].values, sets};
}

} // namespace

void setOrder(Order order, uint64_t seed) {
  Machine &own = ownMachine();
  own.order = order;
  own.setSeed(seed);
}

Order order() { return ownMachine().order; }
uint64_t draw() { return ownMachine().draw(); }

void beginBlocks(const Launch &launch, const std::function<void()> &body) {
  ownMachine().launch = &launch;
  machine->body = &body;
  machine->error.clear();
  machine->shared.reset(new unsigned char[launch.shared]);
  gridDim = {launch.grid.x, launch.grid.y, launch.grid.z};
  blockDim = {launch.block.x, launch.block.y, launch.block.z};
  prepareLaunch();
}

void runBlock(uint3 index) {
  blockIdx = index;
  ++machine->begun;
  readyThreads();
  leave(machine->main, choose());
  if (machine->error.empty())
    return;
  machine->idle.clear(); // abandons whatever is on the fibers
  machine->fibers.clear();
  raise(std::exchange(machine->error, ""));
}

unsigned char *dynamicShared() { return machine->shared.get(); }
int lane() { return machine->current % 32; }

void syncThreads(Where where) { wait(State::AtBlock, 0, where); }
void syncWarp(unsigned mask, Where where) { wait(State::AtWarp, mask, where); }

void exchange(unsigned mask, const void *value, void *result, size_t bytes, int source,
              Where where) {
  meet(mask, value, bytes, where);
  if (source < 0 || source >= 32 || !(mask >> source & 1)) {
    fail(text(where) + " reads lane " + std::to_string(source) + ", which its mask does not have");
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
  machine->error = message;
  wait(State::AtBlock, 0, {message, "", 0});
}

void onThreadEnd(void (*check)()) {
  std::vector<void (*)()> &all = machine->threadEnd;
  if (std::find(all.begin(), all.end(), check) == all.end())
    all.push_back(check);
}

bool isLastThread() { return machine->live == 1; }

void waitFor(const void *event, Where where) {
  machine->threads[size_t(machine->current)].event = event;
  wait(State::AtEvent, 0, where);
}

void wakeThreads(const void *event) {
  for (size_t i = 0; i < machine->threads.size(); ++i)
    if (machine->threads[i].state == State::AtEvent && machine->threads[i].event == event)
      setReady(int(i));
}

void onStandstill(bool (*perform)()) {
  std::vector<bool (*)()> &all = machine->standstill;
  if (std::find(all.begin(), all.end(), perform) == all.end())
    all.push_back(perform);
}

int64_t blocksBegun() { return machine->begun; }

bool asynchronousNow() {
  return machine->order == Order::Reverse ||
         (machine->order == Order::Random && machine->draw() % 2);
}

} // namespace simt
