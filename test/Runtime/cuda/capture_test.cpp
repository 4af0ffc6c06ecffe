// Captures and graphs of the simulated CUDA runtime (test/Support/simulated).

#include "two_streams.h"

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <thread>

namespace {

class SimulatedGraph : public TwoStreams {
protected:
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(a, mode), cudaSuccess);
  }
  /// Returns the result of ending the capture.
  cudaError_t end() {
    cudaGraph_t graph;
    return cudaStreamEndCapture(a, &graph);
  }
  void joinStreams(cudaStream_t from, cudaStream_t to, cudaEvent_t by) {
    EXPECT_EQ(cudaEventRecord(by, from), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(to, by), cudaSuccess);
  }
};

TEST_F(SimulatedGraph, IsReplayed) {
  begin();
  letter(a, '1');
  joinStreams(a, b, fork);
  letter(b, '2');
  letter(a, '3');
  joinStreams(b, a, join);
  letter(a, '4');
  cudaStreamCaptureStatus status;
  EXPECT_EQ(cudaStreamIsCapturing(b, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamEndCapture(a, &graph), cudaSuccess);
  size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 4u);
  EXPECT_EQ(cudaStreamIsCapturing(b, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  cudaGraphExec_t program;
  ASSERT_EQ(cudaGraphInstantiate(&program, graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(take(), ""); // nothing in it has run

  std::set<std::string> traces;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    simulated::setSeed(seed);
    letter(a, '(');
    EXPECT_EQ(cudaGraphLaunch(program, a), cudaSuccess);
    letter(a, ')');
    EXPECT_EQ(cudaGraphLaunch(program, b), cudaSuccess); // after the first
    letter(b, '.');
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::string all = take();
    traces.insert(all.substr(0, 5));
    std::string digits;
    for (char c : all)
      if (c >= '1' && c <= '4')
        digits += c;
    ASSERT_EQ(digits.size(), 8u) << all;
    EXPECT_EQ(digits[3], '4') << all;
    EXPECT_EQ(digits[7], '4') << all;
    EXPECT_EQ(all[0], '(');
    EXPECT_LT(all.find('4'), all.find(')'));
    EXPECT_EQ(all.find('.') > all.rfind('4'), true) << all;
  }
  EXPECT_EQ(traces, (std::set<std::string>{"(1234", "(1324"}));
  EXPECT_EQ(cudaGraphExecDestroy(program), cudaSuccess);
}

/// By default CUDA would run all nodes with the priority of the stream that the graph is launched
/// in.
TEST_F(SimulatedGraph, PrioritiesMustBeAskedFor) {
  cudaStream_t urgent;
  ASSERT_EQ(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -5), cudaSuccess);
  begin();
  letter(a, '1');
  joinStreams(a, urgent, fork);
  letter(urgent, '2');
  joinStreams(urgent, a, join);
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamEndCapture(a, &graph), cudaSuccess);
  cudaGraphExec_t program;
  EXPECT_EQ(cudaGraphInstantiate(&program, graph, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphInstantiate(&program, graph, cudaGraphInstantiateFlagUseNodePriority),
            cudaSuccess);
  cudaGetLastError();
}

TEST_F(SimulatedGraph, CopiesAndFillsAreNodes) {
  float *device, *host;
  ASSERT_EQ(cudaMalloc(&device, 16), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&host, 16), cudaSuccess);
  begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(cudaMemsetAsync(device, 0, 16, a), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(device, host, 8, cudaMemcpyHostToDevice, a), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(host + 2, device, 8, cudaMemcpyDeviceToHost, a), cudaSuccess);
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamEndCapture(a, &graph), cudaSuccess);
  cudaGraphExec_t program;
  ASSERT_EQ(cudaGraphInstantiate(&program, graph), cudaSuccess);
  for (float x : {3.0f, 4.0f}) {
    host[0] = host[1] = x; // a launch reads the values at that time
    EXPECT_EQ(cudaGraphLaunch(program, a), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(a), cudaSuccess);
    EXPECT_EQ(host[3], x);
  }
}

TEST_F(SimulatedGraph, AForkMustBeJoined) {
  begin();
  joinStreams(a, b, fork);
  letter(b, '1');
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  letter(b, '2'); // b is free again
  EXPECT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_EQ(take(), "2");
}

TEST_F(SimulatedGraph, EndsWhereItBegan) {
  begin();
  joinStreams(a, b, fork);
  cudaGraph_t graph;
  EXPECT_EQ(cudaStreamEndCapture(b, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(), cudaErrorIllegalState);
  begin();
  std::thread([&] { EXPECT_EQ(end(), cudaErrorStreamCaptureWrongThread); }).join();
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(SimulatedGraph, TheHostMustNotWaitInACapture) {
  begin();
  EXPECT_EQ(cudaStreamSynchronize(a), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(letter(a, '1'), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  cudaEventRecord(fork, a);
  EXPECT_EQ(cudaEventSynchronize(fork), cudaErrorCapturedEvent);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  void *x;
  begin();
  EXPECT_EQ(cudaMalloc(&x, 4), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaMalloc(&x, 4), cudaSuccess);
  EXPECT_EQ(cudaMemset(x, 0, 4), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(SimulatedGraph, AWatchdogsQueryEndsAGlobalCapture) {
  cudaEventRecord(join, b);
  auto query = [&] {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = cudaEventQuery(join); }).join();
    return error;
  };
  begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(query(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_NE(query(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaSuccess);
  begin(cudaStreamCaptureModeGlobal);
  std::thread([&] {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
    EXPECT_NE(cudaEventQuery(join), cudaErrorStreamCaptureUnsupported);
  }).join();
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(SimulatedGraph, DependenciesDoNotCrossItsBounds) {
  letter(b, '1');
  cudaEventRecord(join, b);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(a, join), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  cudaEventRecord(fork, a);
  EXPECT_EQ(end(), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(b, fork), cudaErrorCapturedEvent);
  begin();
  cudaEventRecord(fork, a);
  EXPECT_EQ(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(b, fork), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

} // namespace
