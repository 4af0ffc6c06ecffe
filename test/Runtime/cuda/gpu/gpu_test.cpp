// A rank's GPU (runtime/cuda/gpu/gpu.h): calls, and inputs written ahead.

#include "cuda/gpu/gpu.h"

#include "common/mesh/mesh.h"
#include "common/target.h"
#include "cuda/cuda.h"
#include "partita_rt/cuda/launch.cuh"
#include "simulated/queue.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace partita_rt::cuda {
namespace {

const Input kInputs[] = {{"x", InputRole::Data, DType::Float32, {4}, {4}, {}, 0}};

std::string trace;

/// Copies the input to persistent memory.
void step(Rank &rank) {
  cudaStream_t stream = rank.device->stream.handle;
  checkCuda(
      cudaMemcpyAsync(rank.persistentBase, rank.inputs[0], 16, cudaMemcpyDeviceToDevice, stream),
      "copy");
  checkCuda(cudaLaunchHostFunc(stream, [](void *) { trace += 's'; }, nullptr), "host");
}

struct OneGpu {
  Stage stage[1];
  Program program;
  Rank rank;
  std::unique_ptr<Gpu> gpu;
  OneGpu() {
    program.name = "test";
    program.inputs = kInputs;
    stage[0].persistentBytes = 16;
    program.stages = stage;
    setCoordinates(rank, program, 0);
    gpu = std::make_unique<Gpu>(rank);
  }
  void send(float value) {
    std::fill_n(static_cast<float *>(rank.hostInputs[0]), 4, value);
    sendInputs(rank, 1);
  }
  std::vector<float> result() {
    std::vector<float> x(4);
    readDevice(rank, x.data(), rank.persistentBase, 16);
    return x;
  }
};

TEST(Gpu, TheHostWorksWhileTheGpuDoes) {
  OneGpu one;
  one.send(1);
  for (int calls = 0; calls < 3; ++calls) { // the second one is a graph
    trace.clear();
    call(one.rank, step, [] { trace += 'm'; });
    EXPECT_EQ(trace, "ms");
  }
}

/// The next call's inputs are written before this call has started to read its own.
TEST(Gpu, InputsAreSentAhead) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    simulated::setSeed(seed);
    OneGpu one;
    one.send(0);
    for (int i = 0; i < 6; ++i) {
      call(one.rank, step, [&] { one.send(float(i + 1)); });
      EXPECT_EQ(one.result(), std::vector<float>(4, float(i))) << seed;
    }
    one.send(70); // instead
    call(one.rank, step);
    EXPECT_EQ(one.result(), std::vector<float>(4, 70)) << seed;
  }
}

__global__ void halve(float *x) { x[threadIdx.x] /= 2; }

/// Two kernels, one of them launched twice.
void threeLaunches(Rank &rank) {
  const Stream &stream = rank.device->stream;
  auto *x = static_cast<float *>(static_cast<void *>(rank.persistentBase));
  for (int i = 0; i < 2; ++i)
    PARTITA_RT_LAUNCH(halve, 1, 4, 0, stream, x);
  Timed matmul(stream, "a matmul", nullptr, 2e6);
}

/// The kernels of the requested step are listed in a table, once; the other steps are graphs as
/// usual.
TEST(Gpu, KernelsOfAStepAreTimed) {
  setenv("PARTITA_RT_KERNEL_TIMES", "3", 1);
  OneGpu one;
  unsetenv("PARTITA_RT_KERNEL_TIMES");
  one.send(1);
  int64_t graphs = simulated::counters().graphLaunches;
  testing::internal::CaptureStdout();
  for (one.rank.step = 1; one.rank.step <= 4; ++one.rank.step) {
    call(one.rank, threeLaunches);
    call(one.rank, step); // another function of the step
  }
  std::string said = testing::internal::GetCapturedStdout();
  EXPECT_EQ(simulated::counters().graphLaunches - graphs, 2 + 3);
  EXPECT_EQ(said.find("kernels        3 launches, "), 0u) << said;
  EXPECT_NE(said.find("   2 x "), std::string::npos) << said;
  EXPECT_NE(said.find(" us  halve\n"), std::string::npos) << said;
  EXPECT_NE(said.find(" TFLOP/s  a matmul\n"), std::string::npos) << said;
  EXPECT_EQ(said.find("kernels", 1), std::string::npos) << said;
}

__global__ void fill(float *x, float value) { x[threadIdx.x] = value; }

/// Queues other work in exact updates.
void phased(Rank &rank) {
  auto *x = static_cast<float *>(static_cast<void *>(rank.persistentBase));
  bool exact = stepIsExact(rank, {6, 1});
  PARTITA_RT_LAUNCH(fill, 1, 4, 0, rank.device->stream, x, exact ? 1.0f : 2.0f);
  if (!exact && !stepIsExact(rank, {8, 0})) // which an exact update does not ask
    PARTITA_RT_LAUNCH(halve, 1, 4, 0, rank.device->stream, x);
}

/// A graph is launched for the updates whose work it has, in whatever order these come.
TEST(Gpu, AFunctionHasAGraphForEachPhase) {
  OneGpu one;
  one.send(1);
  int64_t graphs = simulated::counters().graphLaunches;
  std::string issued;
  for (int64_t update : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3, 12}) {
    one.rank.step = one.rank.update = update;
    issued += call(one.rank, phased) ? 'i' : '-'; // directly, captured; or launched again
    bool exact = update == 1 || update == 2 || update == 4;
    EXPECT_EQ(one.result(), std::vector<float>(4, exact || update > 8 ? 1.0f : 2.0f)) << update;
  }
  EXPECT_EQ(simulated::counters().graphLaunches - graphs, 14 - 3);
  EXPECT_EQ(issued, "iii-i---ii----");
}

TEST(Gpu, TheTimedStepIsANumber) {
  for (const char *wrong : {"0", "-1", "first", "2x"}) {
    setenv("PARTITA_RT_KERNEL_TIMES", wrong, 1);
    EXPECT_THROW(OneGpu(), Error) << wrong;
  }
  unsetenv("PARTITA_RT_KERNEL_TIMES");
}

} // namespace
} // namespace partita_rt::cuda
