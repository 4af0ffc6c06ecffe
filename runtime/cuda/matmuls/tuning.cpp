// Finds the fastest of cuBLASLt's algorithms (matmuls.h), and whether a matmul and its epilogue
// are faster as separate kernels. For example, an epilogue that sums an operand's rows may exclude
// splitting k, which a small result of a long sum needs.

#include "cuda/cuda.h"
#include "cuda/matmuls/plan.h"

#include <algorithm>
#include <limits>

namespace partita_rt::cuda {

namespace {

constexpr int kTunedSuggestions = 32;
/// Runs between two events.
constexpr int kRuns = 4;

struct Event {
  cudaEvent_t handle = nullptr;
  Event() { checkCuda(cudaEventCreate(&handle), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
};

/// Returns the nanoseconds of one run; -1 if it fails. The first run keeps the stream busy while
/// the host goes ahead, whose time must not be measured.
int64_t timeOf(const Stream &stream, const std::function<bool()> &run) {
  Event begin, end;
  if (!run())
    return -1;
  checkCuda(cudaEventRecord(begin.handle, stream.handle), "cudaEventRecord");
  for (int i = 0; i < kRuns; ++i)
    if (!run())
      return -1;
  checkCuda(cudaEventRecord(end.handle, stream.handle), "cudaEventRecord");
  checkCuda(cudaEventSynchronize(end.handle), "cudaEventSynchronize");
  float milliseconds = 0.0f;
  checkCuda(cudaEventElapsedTime(&milliseconds, begin.handle, end.handle), "cudaEventElapsedTime");
  return int64_t(double(milliseconds) * 1e6 / kRuns);
}

/// The number of rounds that include all candidates, and the max ratio to the fastest afterwards.
constexpr int kTurnsOfAll = 2;
constexpr double kMuchSlower = 1.3;

/// Marks slow candidates, by the fastest of each one's times.
void findSlow(const std::vector<std::vector<int64_t>> &times, std::vector<bool> &slow) {
  int64_t best = std::numeric_limits<int64_t>::max();
  auto fastest = [](const std::vector<int64_t> &each) {
    return each.empty() ? std::numeric_limits<int64_t>::max()
                        : *std::min_element(each.begin(), each.end());
  };
  for (const std::vector<int64_t> &each : times)
    best = std::min(best, fastest(each));
  for (size_t j = 0; j < times.size(); ++j)
    slow[j] = slow[j] || double(fastest(times[j])) > kMuchSlower * double(best);
}

} // namespace

void Matmuls::beginRecording() {
  recording = true;
  recorded.clear();
}

/// Measures all candidates in turn, round after round, so that a changing clock affects all alike.
/// Those that are much slower than the best in the first rounds are left out of the others, where
/// they would take most of tuning's time.
Choice Matmuls::tune(const Stream &stream, Plan &plan, const Recorded &matmul, int repetitions) {
  auto found = suggestions(plan, kTunedSuggestions);
  auto refused = [&](const cublasLtMatmulHeuristicResult_t &each) {
    size_t needed = 0;
    return checkAlgorithm(plan, each.algo, needed) != CUBLAS_STATUS_SUCCESS ||
           needed > size_t(workspaceBytes);
  };
  found.erase(std::remove_if(found.begin(), found.end(), refused), found.end());
  std::vector<std::function<bool()>> candidates;
  for (const cublasLtMatmulHeuristicResult_t &each : found)
    candidates.push_back(
        [&] { return launch(stream, plan, each.algo, matmul.operands) == CUBLAS_STATUS_SUCCESS; });
  if (matmul.apart)
    candidates.push_back([&] { return matmul.apart(stream), true; });
  std::vector<std::vector<int64_t>> times(candidates.size());
  std::vector<bool> slow(candidates.size());
  repetitions = std::max(1, repetitions);
  for (int i = -1; i < repetitions; ++i) { // the first round loads kernels
    for (size_t j = 0; j < candidates.size(); ++j)
      if (!slow[j]) {
        int64_t time = timeOf(stream, candidates[j]);
        if (time < 0)
          slow[j] = true, times[j].clear();
        else if (i >= 0)
          times[j].push_back(time);
      }
    if (i + 1 == kTurnsOfAll)
      findSlow(times, slow);
  }
  Choice best{plan.shape.text(), plan.algorithm, -1, -1};
  for (size_t j = 0; j < candidates.size(); ++j) {
    if (times[j].empty())
      continue; // does not run
    auto median = times[j].begin() + std::ptrdiff_t(times[j].size() / 2);
    std::nth_element(times[j].begin(), median, times[j].end());
    if (best.first < 0)
      best.first = *median;
    int64_t &ofKind = j >= found.size() ? best.kernelsApart : best.oneKernel;
    if (ofKind < 0 || *median < ofKind)
      ofKind = *median;
    if (slow[j])
      continue;
    if (best.nanoseconds >= 0 && *median >= best.nanoseconds)
      continue;
    best.nanoseconds = *median;
    best.apart = j >= found.size();
    best.algorithm = best.apart ? cublasLtMatmulAlgo_t{} : found[j].algo;
  }
  if (best.nanoseconds < 0)
    fail("%s: none of cuBLASLt's algorithms for it runs", best.shape.c_str());
  plan.algorithm = best.algorithm;
  plan.possible = !best.apart;
  return best;
}

std::vector<Choice> Matmuls::tuneRecorded(const Stream &stream, int repetitions) {
  // Running separate kernels records their matmuls too, which may again have separate kernels.
  // Plain matmuls are tuned first.
  for (size_t known = 0; known < recorded.size();) {
    known = recorded.size();
    for (const auto &[shape, matmul] : std::map<MatmulShape, Recorded>(recorded))
      if (matmul.apart)
        matmul.apart(stream);
  }
  recording = false;
  std::vector<Choice> made;
  for (bool plain : {true, false})
    for (const auto &[shape, matmul] : recorded)
      if ((shape.epilogue == Epilogue::None) == plain) {
        made.push_back(tune(stream, planOf(shape, matmul.operands), matmul, repetitions));
        choices[made.back().shape] = made.back();
      }
  recorded.clear();
  return made;
}

} // namespace partita_rt::cuda
