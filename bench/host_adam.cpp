// The update of a rank beside a plain copy of as many bytes (bench/host_adam runs it): every thread
// is a rank with arrays of its own, as where ranks are threads. Prints one JSON line.
//
//   partita_rt_bench_adam THREADS ELEMENTS REPEATS

#include "cpu/transfer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace partita_rt;

namespace {

struct RankArrays {
  explicit RankArrays(int64_t n)
      : p(size_t(n), 0.1f), m(size_t(n), 0.01f), v(size_t(n), 0.02f), g(size_t(n), 0.03f),
        staging(size_t(stagingElements(Home::Device, kTile))) {
    rank.transfers = &engine;
  }
  static constexpr int64_t kTile = 1 << 18; // lib/Lower/Optimizer.cpp
  std::vector<float> p, m, v, g, staging;
  TransferEngine engine;
  Rank rank;
};

/// Plain, and hidden from the optimizer's eye for memcpy.
__attribute__((noinline, optimize("no-tree-loop-distribute-patterns"))) void
copyLoop(float *__restrict to, const float *__restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = from[i];
}

/// Wall seconds until all ranks have done it, median of the repeats.
double seconds(std::vector<std::unique_ptr<RankArrays>> &ranks, int repeats,
               const std::function<void(RankArrays &)> &body) {
  std::vector<double> times;
  for (int repeat = 0; repeat <= repeats; ++repeat) { // the first touches the pages
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
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
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
  AdamW options{1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f, 10};
  double copy = seconds(ranks, repeats, [&](RankArrays &a) {
    copyLoop(a.m.data(), a.v.data(), n);
    copyLoop(a.g.data(), a.p.data(), n);
  });
  double adam = seconds(ranks, repeats, [&](RankArrays &a) {
    adamwUpdate(a.p.data(), a.m.data(), a.v.data(), a.g.data(), n, options);
  });
  auto onHost = [&](Home home) {
    return seconds(ranks, repeats, [&, home](RankArrays &a) {
      adamwUpdateOnHost(a.rank, home, a.p.data(), a.m.data(), a.v.data(), a.g.data(), n, options,
                        a.staging.data(), RankArrays::kTile);
    });
  };
  double all = double(n) * threads;
  std::printf("{\"copy_bytes_per_second\": %.4g, \"adamw_bytes_per_second\": %.4g, "
              "\"adamw_seconds\": %.6g, \"parameters_on_host_seconds\": %.6g, "
              "\"parameters_on_device_seconds\": %.6g}\n",
              16 * all / copy, 28 * all / adam, adam, onHost(Home::Host), onHost(Home::Device));
  return 0;
}
