// Times kernels with events (event_times.h).

#include "cuda/gpu/event_times.h"

#include "cuda/cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <map>

namespace partita_rt::cuda {

namespace {

struct Sum {
  std::string name;
  int64_t launches = 0;
  double milliseconds = 0, flops = 0;
};

void replaceAll(std::string &text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// Returns the kernel's name with its template arguments, which `name` spells as the source does,
/// but without the function's parameters.
std::string nameOf(const char *name, const void *kernel) {
  const char *mangled = nullptr;
  if (!kernel || cudaFuncGetName(&mangled, kernel) != cudaSuccess || !mangled) {
    (void)cudaGetLastError();
    return name;
  }
  int status = 0;
  char *plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string text = plain ? plain : mangled;
  std::free(plain);
  int depth = 0; // parameters begin at the first parenthesis outside angle brackets
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
    if (text[i] == '(' && depth == 0 && text.compare(i, 12, "(anonymous n") != 0) {
      text.resize(i);
      break;
    }
  }
  for (const char *noise :
       {"void ", "partita_rt::cuda::", "partita_rt::", "(anonymous namespace)::"})
    replaceAll(text, noise, "");
  return text;
}

double millisecondsBetween(cudaEvent_t begin, cudaEvent_t end) {
  float milliseconds = 0;
  checkCuda(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  return milliseconds;
}

std::string lineOf(const Sum &sum, double all) {
  char text[128], rate[32] = "";
  if (sum.flops > 0)
    std::snprintf(rate, sizeof rate, "  %.1f TFLOP/s", sum.flops / sum.milliseconds * 1e-9);
  std::snprintf(text, sizeof text, "%12.3f ms %5.1f %% %5lld x %9.1f us%s  ", sum.milliseconds,
                100 * sum.milliseconds / all, (long long)sum.launches,
                1e3 * sum.milliseconds / double(sum.launches), rate);
  constexpr size_t kMost = 160;
  return text + sum.name.substr(0, kMost) + (sum.name.size() > kMost ? "..." : "") + "\n";
}

} // namespace

EventTimes::~EventTimes() {
  for (const Launch &launch : launches)
    for (cudaEvent_t event : {launch.begin, launch.end})
      if (event)
        cudaEventDestroy(event);
}

void EventTimes::begin(cudaStream_t stream, const char *name, const void *kernel, double flops) {
  launches.push_back({nameOf(name, kernel), flops, nullptr, nullptr});
  for (cudaEvent_t *event : {&launches.back().begin, &launches.back().end})
    checkCuda(cudaEventCreate(event), "cudaEventCreate");
  checkCuda(cudaEventRecord(launches.back().begin, stream), "cudaEventRecord");
}

void EventTimes::end(cudaStream_t stream) {
  // Ignore errors: a launch that failed has already thrown.
  (void)cudaEventRecord(launches.back().end, stream);
}

std::string EventTimes::table() {
  if (launches.empty())
    return "kernels        none\n";
  std::map<std::string, Sum> byName;
  double inKernels = 0;
  for (const Launch &launch : launches) {
    Sum &sum = byName[launch.name];
    double milliseconds = millisecondsBetween(launch.begin, launch.end);
    sum.name = launch.name;
    ++sum.launches;
    sum.milliseconds += milliseconds;
    sum.flops += launch.flops;
    inKernels += milliseconds;
  }
  std::vector<Sum> sums;
  for (const auto &[name, sum] : byName)
    sums.push_back(sum);
  std::stable_sort(sums.begin(), sums.end(), [](const Sum &left, const Sum &right) {
    return left.milliseconds > right.milliseconds;
  });
  char head[128];
  std::snprintf(head, sizeof head,
                "%-14s %zu launches, %.3f ms from the first to the last, %.3f ms in them\n",
                "kernels", launches.size(),
                millisecondsBetween(launches.front().begin, launches.back().end), inKernels);
  std::string text = head;
  for (const Sum &sum : sums)
    text += lineOf(sum, inKernels);
  return text;
}

int64_t timedStep() {
  const char *text = std::getenv("PARTITA_RT_KERNEL_TIMES");
  if (!text || !*text)
    return 0;
  char *end = nullptr;
  long long step = std::strtoll(text, &end, 10);
  if (*end || step < 1)
    fail("PARTITA_RT_KERNEL_TIMES=%s: the number of a step, from 1, is expected", text);
  return step;
}

} // namespace partita_rt::cuda
