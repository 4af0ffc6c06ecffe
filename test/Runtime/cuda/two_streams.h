// Two streams of the simulated CUDA runtime, whose order of work is visible as letters.

#ifndef PARTITA_TEST_RUNTIME_CUDA_TWO_STREAMS_H
#define PARTITA_TEST_RUNTIME_CUDA_TWO_STREAMS_H

#include "simulated/queue.h"

#include <gtest/gtest.h>
#include <string>

class TwoStreams : public testing::Test {
protected:
  void SetUp() override {
    for (cudaStream_t *stream : {&a, &b})
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    for (cudaEvent_t *event : {&fork, &join})
      ASSERT_EQ(cudaEventCreateWithFlags(event, cudaEventDisableTiming), cudaSuccess);
  }
  void TearDown() override {
    cudaGetLastError();
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    simulated::setSeed(1);
  }

  /// Adds an entry that appends a letter to `trace`.
  cudaError_t letter(cudaStream_t stream, char c) {
    return simulated::enqueue(stream, "letter", [this, c] { trace += c; });
  }
  std::string take() { return std::exchange(trace, ""); }

  cudaStream_t a, b;
  cudaEvent_t fork, join;
  std::string trace;
};

#endif // PARTITA_TEST_RUNTIME_CUDA_TWO_STREAMS_H
