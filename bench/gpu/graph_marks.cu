// What it costs that the watchdog can see how far the collectives of a CUDA graph are (runtime/cuda/ranks/graph_marks.h):
// a chain of short kernels, in place of collectives, as one graph, without marks and with a mark before and after
// each kernel. Prints microseconds per kernel of the chain, the median of launches.
//
//   nvcc -std=c++17 -O3 -arch=sm_90 -I runtime/include -I runtime -o graph_marks bench/gpu/graph_marks.cu

#include "bench.cuh"

#include <algorithm>
#include <cuda.h>
#include <vector>

using partita_rt::cuda::check;

namespace {

constexpr int kKernels = 400, kLaunches = 25;

enum class Marks { None, Kernels, Values, Branch };
struct Variant {
  Marks marks;
  const char *name;
};
constexpr Variant kVariants[] = {
    {Marks::None, "no marks"},
    {Marks::Kernels, "a kernel of one thread in the chain"},
    {Marks::Values, "cuStreamWriteValue32 in the chain"},
    {Marks::Branch, "a kernel of one thread on a branch beside it"},
};

__global__ void work(int64_t cycles) {
  int64_t begin = clock64();
  while (clock64() - begin < cycles)
    ;
}

__global__ void write(volatile uint64_t *mark, const uint64_t *call, uint64_t number) {
  mark[0] = *call;
  __threadfence_system();
  mark[1] = number;
}

using WriteValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

WriteValue findWriteValue() {
  void *entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &entry, 12000, cudaEnableDefault,
                                         &found),
        "cuStreamWriteValue32");
  return reinterpret_cast<WriteValue>(entry);
}

class Chain {
public:
  Chain() {
    check(cudaStreamCreateWithFlags(&chain, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), "cudaEventCreate");
    check(
        cudaHostAlloc(reinterpret_cast<void **>(&marks), 4 * sizeof(uint64_t), cudaHostAllocMapped),
        "cudaHostAlloc");
    check(cudaMalloc(reinterpret_cast<void **>(&call), sizeof(uint64_t)), "cudaMalloc");
    check(cudaMemset(call, 0, sizeof(uint64_t)), "cudaMemset");
  }

  /// Returns microseconds per kernel.
  double time(Marks kind, int64_t cycles) {
    check(cudaStreamBeginCapture(chain, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 1; i <= kKernels; ++i) {
      mark(kind, 0, uint64_t(i));
      work<<<16, 512, 0, chain>>>(cycles);
      mark(kind, 1, uint64_t(i));
    }
    if (kind == Marks::Branch)
      wait(chain, branch);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamEndCapture(chain, &graph), "capture");
    check(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority),
          "cudaGraphInstantiate");
    cudaEvent_t begin = nullptr, end = nullptr;
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    std::vector<float> times(kLaunches);
    for (float &milliseconds : times) {
      check(cudaEventRecord(begin, chain), "cudaEventRecord");
      check(cudaGraphLaunch(executable, chain), "cudaGraphLaunch");
      check(cudaEventRecord(end, chain), "cudaEventRecord");
      check(cudaEventSynchronize(end), "cudaEventSynchronize");
      check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    std::nth_element(times.begin(), times.begin() + kLaunches / 2, times.end());
    return 1e3 * times[kLaunches / 2] / kKernels;
  }

private:
  void wait(cudaStream_t waiting, cudaStream_t for_) {
    check(cudaEventRecord(fork, for_), "cudaEventRecord");
    check(cudaStreamWaitEvent(waiting, fork, 0), "cudaStreamWaitEvent");
  }

  void mark(Marks kind, int which, uint64_t number) {
    if (kind == Marks::Values &&
        writeValue(chain, CUdeviceptr(marks + which), cuuint32_t(number), 0) != CUDA_SUCCESS)
      check(cudaErrorNotSupported, "cuStreamWriteValue32");
    if (kind == Marks::Branch)
      wait(branch, chain);
    if (kind == Marks::Kernels || kind == Marks::Branch)
      write<<<1, 1, 0, kind == Marks::Branch ? branch : chain>>>(marks + 2 * which, call, number);
  }

  cudaStream_t chain = nullptr, branch = nullptr;
  cudaEvent_t fork = nullptr;
  uint64_t *marks = nullptr, *call = nullptr;
  WriteValue writeValue = findWriteValue();
};

} // namespace

int main() {
  Chain chain;
  for (int64_t cycles : {0, 10000, 40000})
    for (const Variant &each : kVariants)
      printf("%6lld cycles, %-44s %6.2f us\n", static_cast<long long>(cycles), each.name,
             chain.time(each.marks, cycles));
  return 0;
}
