// Ranks with simulated GPUs and communicators, for tests of several ranks.

#ifndef PARTITA_TEST_CUDA_GPU_RANK_H
#define PARTITA_TEST_CUDA_GPU_RANK_H

#include "common/mesh/mesh.h"
#include "cuda/cuda.h"
#include "cuda/ranks/nccl_group.h"
#include "cuda/side_streams.h"
#include "partita_rt/exit_status.h"
#include "processes/forked_ranks.h"

#include <gtest/gtest.h>

namespace partita_rt::cuda {

using processes::Ended, processes::freePort, processes::environmentOf, processes::runRanks,
    processes::textOf;

/// A rank with a GPU and its communicators.
struct GpuRank {
  GpuRank(const Program &program, int number, int port)
      : rendezvous(environmentOf(number, rankCount(program), port), "test", timeoutSeconds(),
                   [&](int rank) { return rankText(program, rank); }) {
    setCoordinates(rank, program, number);
    checkCuda(cudaStreamCreateWithFlags(&device.stream.handle, cudaStreamNonBlocking), "stream");
    rank.device = &device;
    communicators = makeCommunicators(rank, program, rendezvous, device);
  }
  ~GpuRank() {
    communicators = {};
    cudaStreamDestroy(device.stream.handle);
  }
  void synchronize() {
    checkCuda(cudaStreamSynchronize(device.stream.handle), "cudaStreamSynchronize");
  }
  processes::Rendezvous rendezvous;
  Device device;
  Rank rank;
  Communicators communicators;
};

template <size_t n> Program programOf(const Axis (&mesh)[n]) {
  Program program;
  program.name = "test";
  program.mesh = mesh;
  return program;
}

template <size_t n, size_t m> Program programOf(const Axis (&mesh)[n], const Group (&groups)[m]) {
  Program program = programOf(mesh);
  program.groups = groups;
  return program;
}

constexpr Axis kTwo[] = {{"dp", 2}};
constexpr Group kGroupsOfTwo[] = {{"dp", {0}}};

inline cudaGraph_t captureGraph(const GpuRank &gpu, const std::function<void()> &body) {
  cudaGraph_t graph = nullptr;
  checkCuda(cudaStreamBeginCapture(gpu.device.stream.handle, cudaStreamCaptureModeThreadLocal),
            "capture");
  body();
  joinSideStreams(gpu.device);
  checkCuda(cudaStreamEndCapture(gpu.device.stream.handle, &graph), "capture");
  return graph;
}

inline cudaGraphExec_t capture(const GpuRank &gpu, const std::function<void()> &body) {
  cudaGraph_t graph = captureGraph(gpu, body);
  cudaGraphExec_t executable = nullptr;
  checkCuda(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority),
            "instantiate");
  cudaGraphDestroy(graph);
  return executable;
}

inline std::vector<Ended> runGpus(int port, const std::function<void(GpuRank &)> &body) {
  Program program = programOf(kTwo, kGroupsOfTwo);
  return runRanks(2, [&](int number) {
    GpuRank gpu(program, number, port);
    body(gpu);
    gpu.synchronize();
  });
}

/// Runs `body`; an exception fails the rendezvous, like a rank's error.
inline void failOnError(GpuRank &gpu, const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    gpu.rendezvous.fail(error.what());
  }
}

/// Expects that two ranks ended because the simulated NCCL saw them differ: rank 0 was at `call`.
inline void expectNonsense(const std::vector<Ended> &all, const std::string &call) {
  std::string text = textOf(all);
  EXPECT_NE(text.find("NCCL would hang or compute nonsense: rank 0 is at " + call),
            std::string::npos)
      << text;
  EXPECT_EQ(all[0].code, 1);
  EXPECT_EQ(all[1].code, 1);
}

inline float *deviceFloats(size_t n) {
  float *data = nullptr;
  checkCuda(cudaMalloc(&data, n * sizeof(float)), "cudaMalloc");
  checkCuda(cudaMemset(data, 0, n * sizeof(float)), "cudaMemset");
  return data;
}

inline std::string nameOf(const Ended &rank, int number) {
  char host[256];
  gethostname(host, sizeof(host));
  return "rank " + std::to_string(number) + " (host " + host + ", process " +
         std::to_string(rank.process) + ")";
}

inline void expectEnd(const std::vector<Ended> &all, const std::string &message,
                      int code = kRefused) {
  EXPECT_EQ(all[0].code, code) << all[0].text;
  EXPECT_EQ(textOf(all), "test: error: " + message + "\n");
}

} // namespace partita_rt::cuda

#endif // PARTITA_TEST_CUDA_GPU_RANK_H
