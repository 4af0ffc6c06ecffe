// The simulated CUDA runtime (test/Support/simulated): CUDA's guarantees hold in every order, and a
// program's mistakes are detected.

#include "simulated/launch.h"
#include "two_streams.h"

#include "partita_rt/cuda/launch.cuh"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kSeeds = 300; ///< one in ten gives an order of its own

class SimulatedCuda : public TwoStreams {
public:
  void addFromHost() { trace += '2'; }

protected:
  float *deviceFloats(size_t n) {
    float *x = nullptr;
    EXPECT_EQ(cudaMalloc(&x, n * sizeof(float)), cudaSuccess);
    return x;
  }
  float *pinnedFloats(size_t n) {
    float *x = nullptr;
    EXPECT_EQ(cudaMallocHost(&x, n * sizeof(float)), cudaSuccess);
    return x;
  }
};

__global__ void scale(float *y, const float *x, float by) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = by * x[i];
}

void launchScale(cudaStream_t stream, float *y, const float *x, float by) {
  simulated::launch({"scale", 4, 64, 0}, stream, scale, y, x, by);
}

//===-- Order -------------------------------------------------------------------------------===//

TEST_F(SimulatedCuda, NothingRunsBeforeTheHostWaits) {
  letter(a, 'x');
  EXPECT_EQ(take(), "");
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_EQ(take(), "x");
}

/// Returns a program's traces under many seeds.
template <typename Program> std::set<std::string> traces(Program program) {
  std::set<std::string> all;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    simulated::setSeed(seed);
    all.insert(program());
  }
  return all;
}

TEST_F(SimulatedCuda, AForgottenEventGivesOtherOrders) {
  auto program = [&](bool forget) {
    letter(a, '1');
    letter(a, '2');
    EXPECT_EQ(cudaEventRecord(fork, a), cudaSuccess);
    if (!forget) {
      EXPECT_EQ(cudaStreamWaitEvent(b, fork), cudaSuccess);
    }
    letter(b, '3');
    letter(b, '4');
    EXPECT_EQ(cudaEventRecord(join, b), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(a, join), cudaSuccess);
    letter(a, '5');
    EXPECT_EQ(cudaStreamSynchronize(a), cudaSuccess);
    return take();
  };
  EXPECT_EQ(traces([&] { return program(false); }), std::set<std::string>{"12345"});
  std::set<std::string> some = traces([&] { return program(true); });
  EXPECT_GT(some.size(), 2u);
  EXPECT_TRUE(some.count("34125"));      // as far ahead as it can
  for (const std::string &each : some) { // what must hold in any order
    EXPECT_LT(each.find('1'), each.find('2'));
    EXPECT_LT(each.find('3'), each.find('4'));
    EXPECT_EQ(each.find('5'), 4u);
  }
}

TEST_F(SimulatedCuda, ASeedIsOneOrder) {
  auto program = [&] {
    for (char c = 'a'; c < 'u'; ++c)
      letter(c % 3 ? a : b, c);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return take();
  };
  simulated::setSeed(5);
  std::string first = program();
  EXPECT_EQ(first.size(), 20u);
  simulated::setSeed(5);
  EXPECT_EQ(program(), first);
}

TEST_F(SimulatedCuda, WaitingForOneStreamMayLeaveAnother) {
  std::set<std::string> some = traces([&] {
    letter(a, 'a');
    letter(b, 'b');
    EXPECT_EQ(cudaStreamSynchronize(a), cudaSuccess);
    std::string seen = trace;
    EXPECT_EQ(cudaStreamSynchronize(b), cudaSuccess);
    take();
    return seen;
  });
  EXPECT_EQ(some, (std::set<std::string>{"a", "ba"}));
}

TEST_F(SimulatedCuda, AnEventIsWhatItWasRecordedAsWhenTheStreamBeganToWait) {
  letter(a, '1');
  cudaEventRecord(fork, a);
  cudaStreamWaitEvent(b, fork);
  letter(a, '2');
  cudaEventRecord(fork, a); // the wait above is for the first
  letter(b, '3');
  std::string seen = *traces([&] {
                        EXPECT_EQ(cudaStreamSynchronize(b), cudaSuccess);
                        return trace;
                      }).begin();
  EXPECT_TRUE(seen == "13" || seen == "123") << seen;
  EXPECT_EQ(cudaEventSynchronize(fork), cudaSuccess);
  EXPECT_NE(take().find('2'), std::string::npos);
}

TEST_F(SimulatedCuda, QueriesDoNotWaitButEndWell) {
  letter(a, '1');
  letter(a, '2');
  cudaEventRecord(fork, a);
  int notReady = 0;
  while (cudaEventQuery(fork) == cudaErrorNotReady)
    ASSERT_LT(++notReady, 1000);
  EXPECT_GT(notReady, 0);
  EXPECT_EQ(take(), "12");
  EXPECT_EQ(cudaStreamQuery(a), cudaSuccess);
}

TEST_F(SimulatedCuda, AnEntryWaitsUntilItIsReady) {
  std::atomic<bool> ready{false};
  int asked = 0;
  simulated::enqueue(
      a, "collective", [this] { trace += 'c'; },
      [&] {
        ++asked;
        return ready.load();
      });
  letter(a, 'a');
  letter(b, 'b');
  std::thread peer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ready = true;
  });
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  peer.join();
  EXPECT_EQ(take(), "bca");
  EXPECT_GT(asked, 1);
}

TEST_F(SimulatedCuda, HostFunctionsRunInTheirPlace) {
  letter(a, '1');
  cudaLaunchHostFunc(
      a, [](void *data) { static_cast<SimulatedCuda *>(data)->addFromHost(); }, this);
  letter(a, '3');
  EXPECT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_EQ(take(), "123");
}

TEST_F(SimulatedCuda, TheTimeBetweenEvents) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  float ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaErrorInvalidResourceHandle);
  cudaEventRecord(begin, a);
  simulated::enqueue(a, "sleep", [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); });
  cudaEventRecord(end, a);
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaSuccess);
  EXPECT_GE(ms, 3.0f);
}

//===-- Memory ------------------------------------------------------------------------------===//

TEST_F(SimulatedCuda, KernelsAndCopies) {
  float *x = pinnedFloats(256), *device = deviceFloats(256);
  for (int i = 0; i < 256; ++i)
    x[i] = float(i);
  EXPECT_EQ(cudaMemcpyAsync(device, x, 1024, cudaMemcpyHostToDevice, a), cudaSuccess);
  launchScale(a, device, device, 3.0f);
  launchScale(a, device, device, 0.5f);
  EXPECT_EQ(cudaMemcpyAsync(x, device, 1024, cudaMemcpyDeviceToHost, a), cudaSuccess);
  EXPECT_EQ(x[100], 100.0f);
  EXPECT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(x[i], 1.5f * float(i));

  float rows[2][3] = {};
  EXPECT_EQ(cudaMemcpy2D(rows, 12, device + 2, 40, 8, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(rows[0][1], 4.5f);
  EXPECT_EQ(rows[0][2], 0.0f);
  EXPECT_EQ(rows[1][0], 18.0f);
}

TEST_F(SimulatedCuda, FreshMemoryIsNaN) {
  float *device = deviceFloats(4);
  float x[4] = {};
  EXPECT_EQ(cudaMemcpy(x, device, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  for (float each : x)
    EXPECT_NE(each, each);
}

TEST_F(SimulatedCuda, TheDeviceHasSoMuchMemory) {
  size_t free, total;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, total);
  float *x = deviceFloats(1000), *y = nullptr;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total - free, 4000u);
  EXPECT_EQ(cudaMalloc(&y, free + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(x), cudaSuccess);
  EXPECT_EQ(cudaFree(x), cudaErrorInvalidValue);
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(free, total);
}

TEST_F(SimulatedCuda, CopiesThatAreMistakes) {
  float *device = deviceFloats(8), *pinned = pinnedFloats(8), pageable[8] = {};
  EXPECT_EQ(cudaMemcpyAsync(device, pageable, 32, cudaMemcpyHostToDevice, a),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(pageable, device, 32, cudaMemcpyDeviceToHost, a),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device, pinned, 36, cudaMemcpyHostToDevice, a), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(pinned, device, 32, cudaMemcpyHostToDevice, a), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device + 1, device, 16, cudaMemcpyDeviceToDevice, a),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(pageable, 32, cudaHostRegisterDefault), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(device, pageable, 32, cudaMemcpyHostToDevice, a), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(pageable), cudaSuccess);
}

TEST_F(SimulatedCuda, LaunchesThatAreMistakes) {
  float *device = deviceFloats(256), pageable[256] = {};
  launchScale(a, device, pageable, 1.0f);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  simulated::launch({"scale", 0, 64, 0}, a, scale, device, device, 1.0f);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaStreamQuery(a), cudaSuccess);
}

/// More than 48 KiB of shared memory per block must be requested, and there is a limit.
TEST_F(SimulatedCuda, SharedMemoryMustBeAllowed) {
  float *device = deviceFloats(256);
  auto run = [&](size_t bytes) {
    simulated::launch({"scale", 1, 64, bytes}, a, scale, device, device, 1.0f);
    return cudaGetLastError();
  };
  EXPECT_EQ(run(48 << 10), cudaSuccess);
  EXPECT_EQ(run(64 << 10), cudaErrorInvalidValue);
  auto allow = [](size_t bytes) {
    partita_rt::cuda::allowShared(reinterpret_cast<const void *>(scale), "scale", bytes);
  };
  allow(64 << 10);
  EXPECT_EQ(run(64 << 10), cudaSuccess);
  EXPECT_EQ(run(96 << 10), cudaErrorInvalidValue);
  EXPECT_THROW(allow(256 << 10), partita_rt::Error); // no such GPU has that much
  cudaGetLastError();
}

TEST_F(SimulatedCuda, HandlesThatAreMistakes) {
  EXPECT_EQ(cudaEventDestroy(join), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(a, join), cudaErrorInvalidResourceHandle);
  letter(b, 'b');
  EXPECT_EQ(cudaStreamDestroy(b), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(b), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(take(), "b"); // the stream's work runs without it
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
}

//===-- Errors that end the process ---------------------------------------------------------===//

using SimulatedCudaDeathTest = SimulatedCuda;

TEST_F(SimulatedCudaDeathTest, HostAccessToDeviceMemory) {
  float *device = deviceFloats(256);
  auto read = [&] { return *static_cast<volatile float *>(device + 3); };
  EXPECT_DEATH(read(), "host code reads or writes device memory at 0x[0-9a-f]+, 12 bytes into an "
                       "allocation of 1024 bytes of device memory");
  launchScale(a, device, device, 1.0f);
  EXPECT_DEATH(read(), "host code reads or writes device memory");
  cudaMemset(device, 0, 1024);
  EXPECT_DEATH(read(), "host code reads or writes device memory");
  {
    simulated::DeviceAccess open;
    EXPECT_EQ(read(), 0.0f);
  }
  EXPECT_DEATH(read(), "host code reads or writes device memory");
  EXPECT_DEATH(
      {
        cudaLaunchHostFunc(a, [](void *x) { *static_cast<float *>(x) = 1; }, device);
        cudaStreamSynchronize(a);
      },
      "entry \"host function\" reads or writes device memory");
  cudaFree(device);
  simulated::DeviceAccess open;
  EXPECT_DEATH(read(), "12 bytes into a freed allocation of 1024 bytes");
}

TEST_F(SimulatedCudaDeathTest, KernelsThatLeaveTheirMemory) {
  float *device = deviceFloats(256), *few = deviceFloats(60);
  auto run = [&](float *y) {
    launchScale(a, y, device, 1.0f);
    std::fprintf(stderr, "wait: %s\n", cudaGetErrorName(cudaStreamSynchronize(a)));
    std::exit(cudaMemset(device, 0, 4) == cudaErrorIllegalAddress ? 3 : 4);
  };
  EXPECT_DEATH(run(device + 2), "entry \"scale\" reads or writes device memory at 0x[0-9a-f]+, 0 "
                                "bytes behind an allocation of 1024 bytes|AddressSanitizer");
  EXPECT_DEATH(run(few), "bytes behind an allocation of 240 bytes|AddressSanitizer");
}

TEST_F(SimulatedCudaDeathTest, WritingBesideAnAllocation) {
  float *some = deviceFloats(60);
  auto beside = [&](ptrdiff_t at) {
    simulated::enqueue(a, "beside", [=] { some[at] = 1; });
    cudaError_t error = cudaStreamSynchronize(a);
    std::exit(error == cudaErrorIllegalAddress ? 3 : 4);
  };
  for (ptrdiff_t at : {60, 63, -1})
    EXPECT_DEATH(beside(at), "\"beside\" has written beside an allocation of 240 bytes of device "
                             "memory|AddressSanitizer: use-after-poison");
}

__global__ void meetPartly() {
  if (threadIdx.x < 10)
    __syncthreads();
}

TEST_F(SimulatedCudaDeathTest, AFailedEntryFailsTheDevice) {
  auto program = [&] {
    simulated::launch({"meetPartly", 1, 64, 0}, a, meetPartly);
    bool fails = cudaStreamSynchronize(a) == cudaErrorLaunchFailure;
    void *x;
    bool still = cudaMalloc(&x, 4) == cudaErrorLaunchFailure && cudaGetLastError() &&
                 cudaGetLastError() == cudaErrorLaunchFailure;
    std::exit(fails && still ? 0 : 1);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0),
              "simulated CUDA: meetPartly: meetPartly: block \\(0, 0, 0\\): divergent barrier");
}

TEST_F(SimulatedCudaDeathTest, WhatNeverBecomesReadyIsNamed) {
  auto program = [&] {
    simulated::setTimeout(0.05);
    simulated::enqueue(a, "all-reduce of wte", [] {}, [] { return false; });
    std::exit(cudaStreamSynchronize(a) == cudaErrorLaunchTimeout ? 0 : 1);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0),
              "cudaStreamSynchronize of stream [0-9]+ waits, and nothing could run for 0.05 "
              "seconds: \"all-reduce of wte\" of stream");
}

TEST_F(SimulatedCudaDeathTest, EntriesDoNotCallCuda) {
  auto program = [&] {
    cudaError_t error = cudaSuccess;
    cudaLaunchHostFunc(
        a, [](void *data) { *static_cast<cudaError_t *>(data) = cudaDeviceSynchronize(); }, &error);
    cudaStreamSynchronize(a);
    std::exit(error == cudaErrorNotPermitted ? 0 : 1);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "\"host function\" calls CUDA while it runs");
}

TEST_F(SimulatedCudaDeathTest, DevicesAreTheEnvironments) {
  auto with = [](const char *name, const char *value, cudaError_t expected) {
    setenv(name, value, 1);
    int count;
    std::exit(cudaGetDeviceCount(&count) == expected ? 0 : 1);
  };
  EXPECT_EXIT(with("PARTITA_SIMULATED_DRIVER", "12080", cudaErrorInsufficientDriver),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("PARTITA_SIMULATED_MEMORY", "1000", 1);
        void *x;
        std::exit(cudaMalloc(&x, 1001) == cudaErrorMemoryAllocation ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

} // namespace
