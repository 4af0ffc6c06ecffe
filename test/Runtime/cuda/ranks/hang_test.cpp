// Hanging collectives, and ranks that die in them: one message for all ranks.

#include "gpu_rank.h"
#include "partita_rt/exit_status.h"
#include "simulated/queue.h"

#include <csignal>

namespace partita_rt::cuda {
namespace {

/// Ranks that may wait in vain, for one second.
class Timeouts : public testing::Test {
protected:
  Timeouts() { setenv("PARTITA_RT_TIMEOUT", "1", 1); }
  ~Timeouts() override { unsetenv("PARTITA_RT_TIMEOUT"); }
};

TEST_F(Timeouts, ARankThatDoesNotComeIsNamed) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    float *data = deviceFloats(10);
    allReduce(gpu.rank.group(0), {{data, 10}}, "h.2.mlp");
    if (gpu.rank.rank == 1)
      pause();
    allReduce(gpu.rank.group(0), {{data, 10}}, "h.1.mlp");
  });
  expectEnd(all,
            "rank 0: all_reduce #2 (float32, 40 bytes in 1 buffer) for h.1.mlp over axis dp is "
            "not complete 1 s after it was begun; " +
                nameOf(all[1], 1) +
                " has not come to it: its last over this axis is all_reduce #1 (float32, 40 "
                "bytes in 1 buffer) for h.2.mlp");
}

TEST_F(Timeouts, AGpuThatDoesNotGetThereIsNamed) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    float *data = deviceFloats(10);
    if (gpu.rank.rank == 1)
      cudaLaunchHostFunc(gpu.device.stream.handle, [](void *) { pause(); }, nullptr);
    allReduce(gpu.rank.group(0), {{data, 10}}, "h.1.mlp");
  });
  std::string text = textOf(all);
  // Either may be the first to notice.
  EXPECT_NE(text.find(": all_reduce #1 "), std::string::npos) << text;
  EXPECT_NE(text.find(nameOf(all[1], 1) + " has not reached it: its GPU is at what comes before"),
            std::string::npos)
      << text;
  EXPECT_EQ(all[1].code, 1);
}

/// Runs three calls, each a launch of `body`, and `between` before each. Each call is a step, or
/// all belong to step 1, like batches of an evaluation.
void runCalls(GpuRank &gpu, const std::function<void()> &body,
              const std::function<void(int call)> &between, bool areSteps = true) {
  DeviceMemory control(sizeof(Control), "control");
  gpu.device.control = reinterpret_cast<const Control *>(control.base);
  cudaGraphExec_t graph = capture(gpu, body);
  for (int call = 1; call <= 3; ++call) {
    between(call);
    Control values{};
    values.call = call;
    checkCuda(cudaMemcpy(control.base, &values, sizeof(values), cudaMemcpyHostToDevice), "copy");
    gpu.device.progress.step = areSteps ? call : 1;
    ++gpu.device.progress.begun;
    checkCuda(cudaGraphLaunch(graph, gpu.device.stream.handle), "launch");
    gpu.synchronize();
    ++gpu.device.progress.complete;
  }
  cudaGraphExecDestroy(graph);
}

/// Runs two ranks, of which rank 1 never makes the third call; each has a collective for `why`.
std::vector<Ended> thirdCallAlone(const char *why, bool areSteps) {
  return runGpus(freePort(), [&](GpuRank &gpu) {
    float *data = deviceFloats(10);
    runCalls(
        gpu, [&] { allReduce(gpu.rank.group(0), {{data, 10}}, why); },
        [&](int call) {
          if (call == 3 && gpu.rank.rank == 1)
            pause();
        },
        areSteps);
  });
}

TEST_F(Timeouts, ACollectiveOfAGraphIsNamed) {
  auto all = thirdCallAlone("h.1.mlp", true);
  expectEnd(all,
            "rank 0: all_reduce #1 (float32, 40 bytes in 1 buffer) for h.1.mlp over axis dp in "
            "step 3 is not complete 1 s after it was begun; " +
                nameOf(all[1], 1) + " has not begun it: its last is step 2");
}

/// Every batch of an evaluation has the same collectives, in the same step.
TEST_F(Timeouts, ACollectiveOfAnEvaluationIsNamed) {
  auto all = thirdCallAlone("loss", false);
  expectEnd(all, "rank 0: all_reduce #1 (float32, 40 bytes in 1 buffer) for loss over axis dp in "
                 "step 1 is not complete 1 s after it was begun; " +
                     nameOf(all[1], 1) + " has not begun it: its last is step 1");
}

TEST_F(Timeouts, AGpuThatDoesNotGetThereInAGraphIsNamed) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    float *data = deviceFloats(10);
    static GpuRank *mine;
    mine = &gpu;
    runCalls(
        gpu,
        [&] {
          allReduce(gpu.rank.group(0), {{data, 10}}, "h.2.mlp");
          // Unlike a host function, it lets other streams go on: marks are on one of their own.
          simulated::enqueue(
              gpu.device.stream.handle, "a kernel that does not end", [] {},
              [] { return mine->rank.rank != 1 || mine->device.progress.step != 2; });
          allReduce(gpu.rank.group(0), {{data, 10}}, "h.1.mlp");
        },
        [](int) {});
  });
  std::string text = textOf(all);
  // Rank 1 knows only its own step; rank 0 may be the first to notice.
  EXPECT_TRUE(
      text.find("rank 0: all_reduce #2 (float32, 40 bytes in 1 buffer) for h.1.mlp over axis "
                "dp in step 2 is not complete 1 s after it was begun; " +
                nameOf(all[1], 1) +
                " has not come to it: its last over this axis is all_reduce #1 (float32, 40 "
                "bytes in 1 buffer) for h.2.mlp over axis dp") != std::string::npos ||
      text.find("rank 1: the GPU's work of step 2 is not complete") != std::string::npos)
      << text;
  EXPECT_EQ(all[0].code, 1);
  EXPECT_EQ(all[1].code, 1);
}

/// Without a collective, the step is named.
TEST_F(Timeouts, AGraphThatDoesNotEndIsNamed) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    static int number;
    number = gpu.rank.rank;
    runCalls(
        gpu,
        [&] {
          cudaLaunchHostFunc(
              gpu.device.stream.handle,
              [](void *) {
                if (number == 0)
                  pause();
              },
              nullptr);
        },
        [](int) {});
    pause();
  });
  expectEnd(all, "rank 0: the GPU's work of step 1 is not complete 1 s after it was begun; " +
                     nameOf(all[1], 1) + " has completed it");
}

TEST_F(Timeouts, Rank0ThatHangsIsNamedWithTheCollective) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    gpu.rendezvous.barrier("before");
    if (gpu.rank.rank == 0)
      raise(SIGSTOP);
    float *data = deviceFloats(10);
    allReduce(gpu.rank.group(0), {{data, 10}}, "h.1.mlp");
  });
  EXPECT_EQ(all[1].code, kFailedWhileTraining);
  EXPECT_EQ(textOf(all), "test: error: rank 1: all_reduce #1 (float32, 40 bytes in 1 buffer) for "
                         "h.1.mlp over axis dp is not complete 1 s after it was begun; " +
                             nameOf(all[0], 0) + " does not answer\n");
}

TEST(NcclGroup, ARankThatDiesEndsTheOther) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    if (gpu.rank.rank == 1)
      raise(SIGKILL);
    float *data = deviceFloats(10);
    allReduce(gpu.rank.group(0), {{data, 10}}, "h.1.mlp");
  });
  expectEnd(all,
            nameOf(all[1], 1) + " died; " + nameOf(all[0], 0) +
                " waits in all_reduce #1 (float32, 40 bytes in 1 buffer) for h.1.mlp over axis dp",
            kFailedWhileTraining);
}

TEST(NcclGroup, AnErrorOfNcclsGivesWayToItsCause) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    if (gpu.rank.rank == 1) {
      static_cast<NcclGroup &>(gpu.rank.group(0)).abort(); // rank 0 sees an error
      usleep(1'000'000);
      gpu.rendezvous.fail("out of memory");
    }
    float *data = deviceFloats(10);
    allReduce(gpu.rank.group(0), {{data, 10}}, "h.1.mlp");
  });
  expectEnd(all, "rank 1: out of memory");
}

} // namespace
} // namespace partita_rt::cuda
