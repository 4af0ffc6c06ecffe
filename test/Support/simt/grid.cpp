// Launches (simt.h): refuses impossible ones, and runs the blocks of a grid, on this operating-system thread or on
// several.

#include "simt/block.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace simt {

namespace {

constexpr int64_t kMostThreads = 1024, kMostShared = 227 * 1024; // per block, on sm_90

/// The blocks of a launch, which operating-system threads take one after another.
struct Blocks {
  const Launch &launch;
  const std::function<void()> &body;
  uint64_t count;
  std::vector<uint32_t> shuffled; ///< their numbers in the grid
  bool alone;                     ///< on one operating-system thread
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
};

thread_local Counters done{};
thread_local int atOnce = 1;
thread_local const Blocks *running = nullptr;

std::string triple(unsigned x, unsigned y, unsigned z) {
  return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

/// Returns a random order of blocks; empty if theirs is not random.
std::vector<uint32_t> shuffled(uint32_t count) {
  std::vector<uint32_t> numbers;
  if (order() == Order::Random)
    for (uint32_t i = 0; i < count; ++i) {
      numbers.push_back(i);
      std::swap(numbers[i], numbers[draw() % (i + 1)]);
    }
  return numbers;
}

/// Runs blocks on this operating-system thread until there are no more.
void runBlocks(Blocks &blocks) {
  beginBlocks(blocks.launch, blocks.body);
  running = &blocks;
  const dim3 &grid = blocks.launch.grid;
  for (uint64_t i; !blocks.failed && (i = blocks.next++) < blocks.count;) {
    uint64_t number = !blocks.shuffled.empty()    ? blocks.shuffled[i]
                      : order() == Order::Reverse ? blocks.count - 1 - i
                                                  : i;
    runBlock({unsigned(number % grid.x), unsigned(number / grid.x % grid.y),
              unsigned(number / grid.x / grid.y)});
  }
}

/// Runs them on `count` others. Throws their first error.
void runBlocksAtOnce(Blocks &blocks, int count) {
  std::string error;
  std::vector<std::thread> workers;
  for (int i = 0; i < count; ++i)
    workers.emplace_back([&blocks, &error, order = order(), seed = draw()] {
      setOrder(order, seed);
      try {
        runBlocks(blocks);
      } catch (const LaunchError &thrown) {
        if (!blocks.failed.exchange(true))
          error = thrown.what();
      }
    });
  for (std::thread &worker : workers)
    worker.join();
  if (blocks.failed)
    throw LaunchError(error);
}

} // namespace

Counters counters() { return done; }
void setBlocksAtOnce(int count) { atOnce = count; }

std::string refusal(const Launch &launch) {
  const dim3 &g = launch.grid, &b = launch.block;
  int64_t threads = int64_t(b.x) * b.y * b.z;
  if (threads < 1 || threads > kMostThreads || b.z > 64)
    return "blocks of " + triple(b.x, b.y, b.z) + " threads";
  if (g.x < 1 || g.y < 1 || g.z < 1 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
    return "a grid of " + triple(g.x, g.y, g.z) + " blocks";
  if (launch.shared > size_t(kMostShared))
    return std::to_string(launch.shared) + " bytes of shared memory";
  return "";
}

void runGrid(const Launch &launch, const std::function<void()> &body) {
  if (std::string why = refusal(launch); !why.empty())
    throw LaunchError(std::string(launch.kernel) + ": " + why);
  uint64_t count = uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  Blocks blocks{launch, body, count, shuffled(uint32_t(count)), /*alone=*/atOnce == 1};
  if (blocks.alone)
    runBlocks(blocks);
  else
    runBlocksAtOnce(blocks, atOnce);
  ++done.launches;
  done.blocks += int64_t(count);
  done.threads += int64_t(count) * launch.block.x * launch.block.y * launch.block.z;
}

void waitForOtherBlock(const std::function<bool()> &ready) {
  auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!ready()) {
    if (running->alone)
      throwInKernel("deadlock: a block waits for what no earlier one has done");
    if (running->failed)
      throwInKernel("a block waits for one that has failed");
    if (std::chrono::steady_clock::now() > end)
      throwInKernel("a block has waited a minute for others");
    std::this_thread::yield();
  }
}

void letOtherBlocksRun() {
  if (running->alone)
    return;
  for (uint64_t times = draw() % 8; times > 4; --times)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

} // namespace simt
