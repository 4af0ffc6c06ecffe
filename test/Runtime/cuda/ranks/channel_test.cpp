// Messages between stages over the simulated NCCL: a pipeline of three stages and two data-parallel
// ranks has the bits of one rank, whatever the order of streams, in calls and in graphs.

#include "common/mesh/census.h"
#include "gpu_rank.h"
#include "partita_rt/cuda/kernels.h"
#include "processes/host_group.h"
#include "simulated/queue.h"

#include <csignal>

namespace partita_rt::cuda {
namespace {

constexpr int kStages = 3;
constexpr int64_t kMicros = 6, kWidth = 1001, kEdge = 3, kAll = kWidth + kEdge, kInFlight = 4;

const Axis kMesh[] = {{"pp", kStages}, {"dp", 2}};
const Group kGroups[] = {{"dp", {1}}};
const Channel kChannels[] = {
    {"onward 0", 0, 1}, {"back 0", 1, 0}, {"onward 1", 1, 2}, {"back 1", 2, 1}};
const Stage kStageTable[kStages] = {};

Program pipeline() {
  Program program = programOf(kMesh, kGroups);
  program.stages = kStageTable;
  program.stageAxis = 0;
  program.channels = kChannels;
  return program;
}

float weight(int stage, int64_t i) { return float((i * 7919 + stage * 31) % 997) * 0.37f; }
float input(int shard, int64_t m, int64_t i) {
  return float((i * 104729 + m * 7 + shard) % 9973) * 3.1f;
}

/// Returns the sum of a stage's cotangents over micro-batches and ranks, in order. A layer adds its
/// weight; the cotangent of the last output is the output, and adds the weights on its way back,
/// too.
std::vector<float> expectedSum(int stage) {
  std::vector<float> sum(static_cast<size_t>(kAll));
  for (int64_t i = 0; i < kAll; ++i) {
    float ofShard[2] = {};
    for (int shard : {0, 1})
      for (int64_t m = 0; m < kMicros; ++m) {
        float value = input(shard, m, i);
        for (int s = 0; s < kStages; ++s)
          value += weight(s, i);
        for (int s = kStages - 1; s > stage; --s)
          value += weight(s, i);
        ofShard[shard] += value;
      }
    sum[size_t(i)] = ofShard[0] + ofShard[1];
  }
  return sum;
}

/// A rank's step in the schedule "one forward, one backward".
class Step {
public:
  explicit Step(GpuRank &gpu)
      : gpu(gpu), rank(gpu.rank), stream(gpu.device.stream), stage(rank.stageNumber) {
    std::vector<float> w, inputs;
    for (int64_t i = 0; i < kAll; ++i)
      w.push_back(weight(stage, i));
    for (int64_t m = 0; m < kMicros; ++m)
      for (int64_t i = 0; i < kAll; ++i)
        inputs.push_back(input(rank.coordinates[1], m, i));
    weights = deviceFloats(w.size());
    samples = deviceFloats(inputs.size());
    checkCuda(cudaMemcpy(weights, w.data(), w.size() * 4, cudaMemcpyHostToDevice), "weights");
    checkCuda(cudaMemcpy(samples, inputs.data(), inputs.size() * 4, cudaMemcpyHostToDevice),
              "samples");
    sum = deviceFloats(kAll);
    for (float *&each : x)
      each = deviceFloats(kAll);
    for (float **pair : {y, g, dx})
      pair[0] = deviceFloats(kAll), pair[1] = deviceFloats(kAll);
  }

  void run() {
    fill(stream, sum, 0.0f, kAll);
    startInput(0);
    startCotangent(0);
    int64_t forwards = 0;
    while (forwards < kStages - 1 - stage)
      forward(forwards++);
    for (int64_t m = 0; m < kMicros; ++m) {
      if (forwards < kMicros)
        forward(forwards++);
      backward(m);
    }
    for (PendingMessage *each : {&outputs[0], &outputs[1], &cotangents[0], &cotangents[1]}) {
      wait(*each);
      *each = {};
    }
    allReduce(rank.group(0), {{sum, kAll}}, "gradients");
  }
  std::vector<float> result() {
    gpu.synchronize();
    std::vector<float> host(static_cast<size_t>(kAll));
    checkCuda(cudaMemcpy(host.data(), sum, host.size() * 4, cudaMemcpyDeviceToHost), "sum");
    return host;
  }

private:
  void copy(float *to, const float *from) {
    checkCuda(cudaMemcpyAsync(to, from, kAll * 4, cudaMemcpyDeviceToDevice, stream.handle), "copy");
  }
  void startInput(int64_t m) {
    float *to = x[m % kInFlight];
    if (stage > 0 && m < kMicros)
      arriving =
          receiveStart(rank, 2 * (stage - 1), {{to, kWidth}, {to + kWidth, kEdge}}, "input", m);
  }
  void startCotangent(int64_t m) {
    float *to = g[m % 2];
    if (stage + 1 < kStages && m < kMicros)
      returning =
          receiveStart(rank, 2 * stage + 1, {{to, kWidth}, {to + kWidth, kEdge}}, "cotangent", m);
  }
  void forward(int64_t m) {
    beginSlot(rank, slot++, m, "forward of the layer");
    if (stage == 0)
      copy(x[m % kInFlight], samples + m * kAll);
    wait(arriving);
    arriving = {};
    startInput(m + 1);
    float *to = y[m % 2];
    wait(outputs[m % 2]);
    outputs[m % 2] = {};
    copy(to, x[m % kInFlight]);
    accumulate(stream, to, weights, kAll);
    if (stage + 1 < kStages)
      outputs[m % 2] =
          sendStart(rank, 2 * stage, {{to, kWidth}, {to + kWidth, kEdge}}, "output", m);
    else
      copy(g[m % 2], to);
  }
  void backward(int64_t m) {
    beginSlot(rank, slot++, m, "backward of the layer");
    wait(returning);
    returning = {};
    startCotangent(m + 1);
    float *to = dx[m % 2];
    wait(cotangents[m % 2]);
    cotangents[m % 2] = {};
    accumulate(stream, sum, g[m % 2], kAll);
    copy(to, g[m % 2]);
    accumulate(stream, to, weights, kAll);
    if (stage > 0)
      cotangents[m % 2] =
          sendStart(rank, 2 * stage - 1, {{to, kWidth}, {to + kWidth, kEdge}}, "cotangent", m);
  }

  GpuRank &gpu;
  Rank &rank;
  const Stream &stream;
  int stage;
  int64_t slot = 0;
  float *weights, *samples, *sum, *x[kInFlight], *y[2], *g[2], *dx[2];
  PendingMessage arriving, returning, outputs[2], cotangents[2];
};

std::vector<Ended> runPipeline(const std::function<void(GpuRank &)> &body) {
  Program program = pipeline();
  int port = freePort();
  return runRanks(rankCount(program), [&](int number) {
    GpuRank gpu(program, number, port);
    body(gpu);
    gpu.synchronize();
  });
}

TEST(NcclChannel, APipelineHasTheBitsOfOneRank) {
  std::vector<std::vector<float>> expected;
  for (int stage = 0; stage < kStages; ++stage)
    expected.push_back(expectedSum(stage));
  auto all = runPipeline([&](GpuRank &gpu) {
    Step step(gpu);
    const std::vector<float> &mine = expected[size_t(gpu.rank.stageNumber)];
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      simulated::setSeed(seed + 100 * uint64_t(gpu.rank.rank));
      step.run();
      if (step.result() != mine)
        fail("other bits with seed %d", int(seed));
    }
    gpu.rank.forChannels([](ChannelEnd &end) {
      if (end.outstanding() != 0 || end.count().messages != 3 * kMicros ||
          end.count().bytes != 3 * kMicros * kAll * 4)
        fail("counts differ");
    });
    cudaGraphExec_t graph = capture(gpu, [&] { step.run(); });
    for (int i = 0; i < 2; ++i) {
      checkCuda(cudaGraphLaunch(graph, gpu.device.stream.handle), "launch");
      if (step.result() != mine)
        fail("other bits in a graph");
    }
    cudaGraphExecDestroy(graph);
  });
  for (const Ended &each : all)
    EXPECT_EQ(each.code, 0) << each.text;
}

//===-- Failures ----------------------------------------------------------------------------===//

const Axis kPair[] = {{"pp", 2}};
const Channel kOnward[] = {{"onward", 0, 1}};
const Stage kTwoStages[2] = {};

std::vector<Ended> runPair(const std::function<void(GpuRank &, float *data)> &body) {
  Program program = programOf(kPair);
  program.stages = kTwoStages;
  program.stageAxis = 0;
  program.channels = kOnward;
  int port = freePort();
  return runRanks(2, [&](int number) {
    GpuRank gpu(program, number, port);
    body(gpu, deviceFloats(10));
    gpu.synchronize();
  });
}

/// Returns "rank 1 of stage 1 (host ..., process ...)".
std::string nameOfStage(const Ended &rank, int number) {
  std::string name = nameOf(rank, number), place = "rank " + std::to_string(number);
  return place + " of stage " + std::to_string(number) + name.substr(place.size());
}

TEST(NcclChannel, EndsThatDisagreeAreSaidByTheSimulation) {
  auto all = runPair([](GpuRank &gpu, float *data) {
    if (gpu.rank.rank == 0)
      send(gpu.rank, 0, {{data, 10}}, "h.1.mlp", 0);
    else
      receive(gpu.rank, 0, {{data, 9}}, "h.1.mlp", 0);
    gpu.rendezvous.barrier("the end");
    failOnError(gpu, [&] { gpu.synchronize(); });
  });
  expectNonsense(all, "send of 40 elements");
}

/// Messages of equal sizes: the ends are compared after the first step.
TEST(NcclChannel, AnotherMicroBatchIsFoundAfterTheFirstStep) {
  auto all = runPair([](GpuRank &gpu, float *data) {
    processes::HostGroup world(gpu.rendezvous);
    gpu.rank.world = &world;
    gpu.rank.step = 1;
    compareEnds(gpu.rank);
    if (gpu.rank.rank == 0)
      send(gpu.rank, 0, {{data, 10}}, "h.1.mlp", 0);
    else
      receive(gpu.rank, 0, {{data, 10}}, "h.1.mlp", 1);
    gpu.synchronize();
    failOnError(gpu, [&] { compareEnds(gpu.rank); });
  });
  std::string text = textOf(all);
  EXPECT_NE(text.find("messages over channel onward differ: what rank "), std::string::npos)
      << text;
  EXPECT_EQ(all[0].code, 1);
}

TEST(NcclChannel, TheWrongEndAndWaitingTwiceAreErrors) {
  auto all = runPair([](GpuRank &gpu, float *data) {
    std::string text;
    auto noteError = [&](const std::function<void()> &body) {
      try {
        body();
      } catch (const Error &error) {
        text += std::string(error.what()) + "\n";
      }
    };
    bool sends = gpu.rank.rank == 0;
    PendingMessage message = sends ? sendStart(gpu.rank, 0, {{data, 10}}, "x")
                                   : receiveStart(gpu.rank, 0, {{data, 10}}, "x");
    wait(message);
    gpu.synchronize();
    noteError([&] { wait(message); });
    noteError([&] { (sends ? receive : send)(gpu.rank, 0, {{data, 10}}, "x", -1); });
    noteError([&] { send(gpu.rank, 7, {{data, 10}}, "x"); });
    std::string verb = sends ? "receive" : "send";
    if (text != "message #1 of channel onward is waited for twice\n" + verb +
                    " for x: channel onward leads from stage 0 to stage 1, the rank is of stage " +
                    std::to_string(gpu.rank.rank) +
                    "\nsend for x: the program has no channel 7, only 1\n")
      fail("%s", text.c_str());
  });
  for (const Ended &each : all)
    EXPECT_EQ(each.code, 0) << each.text;
}

TEST(NcclChannel, AStageThatDoesNotComeIsNamed) {
  setenv("PARTITA_RT_TIMEOUT", "1", 1);
  auto all = runPair([](GpuRank &gpu, float *data) {
    if (gpu.rank.rank == 0)
      pause();
    receive(gpu.rank, 0, {{data, 10}}, "h.1.mlp", 3);
  });
  unsetenv("PARTITA_RT_TIMEOUT");
  EXPECT_EQ(all[1].code, 1);
  EXPECT_EQ(textOf(all),
            "test: error: rank 1 of stage 1: receive #1 (float32, 40 bytes in 1 buffer, "
            "micro-batch 3) for h.1.mlp over channel onward is not complete 1 s after "
            "it was begun; " +
                nameOfStage(all[0], 0) +
                " has not come to it: its last over this channel is none\n");
}

TEST(NcclChannel, AStageThatDiesIsNamed) {
  auto all = runPair([](GpuRank &gpu, float *data) {
    if (gpu.rank.rank == 1)
      raise(SIGKILL);
    send(gpu.rank, 0, {{data, 10}}, "h.1.mlp", 3);
  });
  expectEnd(all,
            nameOfStage(all[1], 1) + " died; " + nameOfStage(all[0], 0) +
                " waits in send #1 (float32, 40 bytes in 1 buffer, micro-batch 3) for h.1.mlp "
                "over channel onward",
            kFailedWhileTraining);
}

} // namespace
} // namespace partita_rt::cuda
