// Compares the update of a rank with a plain copy of as many bytes (bench/host_adam runs it): every
// thread is a rank with its own arrays, as in programs whose ranks are threads. Prints one JSON
// line.
//
//   partita_rt_bench_adam THREADS ELEMENTS REPEATS

#include "cpu/ranks/transfer.h"

#include "adamw.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <thread>
#include <vector>

using namespace partita_rt;

namespace {

/// Memory like a run's (cpu/ranks/launch.cpp): huge pages if the system has them.
class Array {
public:
  Array(int64_t n, float value) : bytes(size_t(n) * 4) {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw std::bad_alloc();
    madvise(memory, bytes, MADV_HUGEPAGE);
    base = static_cast<float *>(memory);
    std::fill_n(base, n, value);
  }
  ~Array() { munmap(base, bytes); }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  float *data() { return base; }

private:
  float *base;
  size_t bytes;
};

struct RankArrays {
  explicit RankArrays(int64_t n)
      : p(n, 0.1f), m(n, 0.01f), v(n, 0.02f), g(n, 0.03f),
        staging(stagingElements(Home::Device, kTile), 0.0f) {
    rank.transfers = &engine;
  }
  static constexpr int64_t kTile = 1 << 18; // as in lib/Lower/Kernels/Updates.cpp
  Array p, m, v, g, staging;
  TransferEngine engine;
  Rank rank;
};

/// Copies with a plain loop, which the optimizer must not turn into memcpy.
__attribute__((noinline, optimize("no-tree-loop-distribute-patterns"))) void
copyLoop(float *__restrict to, const float *__restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = from[i];
}

/// Returns the wall seconds until all ranks are done, the minimum over the repeats.
double seconds(std::vector<std::unique_ptr<RankArrays>> &ranks, int repeats,
               const std::function<void(RankArrays &)> &body) {
  std::vector<double> times;
  for (int repeat = 0; repeat <= repeats; ++repeat) { // the first one touches the pages
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (auto &arrays : ranks)
      threads.emplace_back([&] { body(*arrays); });
    for (std::thread &thread : threads)
      thread.join();
    if (repeat > 0)
      times.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return *std::min_element(times.begin(), times.end());
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4)
    return std::fprintf(stderr, "usage: %s THREADS ELEMENTS REPEATS\n", argv[0]), 1;
  int threads = std::atoi(argv[1]), repeats = std::atoi(argv[3]);
  int64_t n = std::atoll(argv[2]) / std::max(threads, 1);
  if (threads < 1 || n < 1 || repeats < 1)
    return std::fprintf(stderr, "%s: expected numbers above 0\n", argv[0]), 1;
  std::vector<std::unique_ptr<RankArrays>> ranks;
  for (int i = 0; i < threads; ++i)
    ranks.push_back(std::make_unique<RankArrays>(n));
  auto update = [](float *p, float *m, float *v, const float *g, int64_t count) {
    adamw(p, m, v, g, count, 1e-3, 10, 0.9, 0.999, 1e-8, 0.01, 1);
  };
  double copy = seconds(ranks, repeats, [&](RankArrays &a) {
    copyLoop(a.m.data(), a.v.data(), n);
    copyLoop(a.g.data(), a.p.data(), n);
  });
  double adam = seconds(ranks, repeats, [&](RankArrays &a) {
    update(a.p.data(), a.m.data(), a.v.data(), a.g.data(), n);
  });
  auto onHost = [&](Home home) {
    return seconds(ranks, repeats, [&, home](RankArrays &a) {
      updateOnHost(a.rank, home, a.p.data(), a.g.data(), n, a.staging.data(), RankArrays::kTile,
                   [&](float *p, const float *g, int64_t from, int64_t count) {
                     update(p, a.m.data() + from, a.v.data() + from, g, count);
                   });
    });
  };
  std::printf(
      "{\"copy_seconds\": %.6g, \"adamw_seconds\": %.6g, \"parameters_on_host_seconds\": %.6g, "
      "\"parameters_on_device_seconds\": %.6g}\n",
      copy, adam, onHost(Home::Host), onHost(Home::Device));
  return 0;
}
