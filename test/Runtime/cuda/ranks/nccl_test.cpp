// Collectives over the simulated NCCL have the bits of the CPU's between threads, for all kinds,
// types, blocks and paddings, whatever the order of streams, in calls and in graphs.

#include "common/mesh/launch.h"
#include "gpu_rank.h"
#include "simulated/nccl_types.h"
#include "simulated/queue.h"

#include <gtest/gtest.h>

namespace partita_rt::cuda {
namespace {

using Bytes = std::vector<char>;

/// Arrays that collectives work on, refilled from constants on every run, and their final contents.
/// On a GPU the fill is work of the compute stream, which exposes a collective that starts too
/// early, or work that does not wait for it.
class HostArrays {
public:
  template <typename T> T *next(const std::vector<T> &values) {
    auto *data = reinterpret_cast<const char *>(values.data());
    arrays.emplace_back(data, data + values.size() * sizeof(T));
    return reinterpret_cast<T *>(arrays.back().data());
  }
  template <typename T>
  void part(const Communicator &group, const T *from, T *to, int64_t count, int64_t blocks,
            int64_t full) {
    partita_rt::takeShard({group.rank(), group.size()}, from, to, count, blocks, full);
  }
  void sum(Communicator &group, OneBitTensors tensors, bool compresses) {
    std::vector<char> scratch(size_t(oneBitScratch(tensors, group.size())));
    oneBitAllReduce(group, tensors, compresses, scratch.data(), "momenta");
  }
  std::deque<Bytes> arrays;
};

/// The arrays in one allocation, with gaps that must not change.
class DeviceArrays {
public:
  explicit DeviceArrays(const Stream &stream)
      : stream(stream), constant(kBytes, "constants"), data(kBytes, "arrays"),
        blocks(kBytes, "blocks"), partials(kBytes, "scratch") {
    checkCuda(cudaMemset(data.base, kGap, kBytes), "cudaMemset");
  }
  template <typename T> T *next(const std::vector<T> &values) {
    size_t bytes = values.size() * sizeof(T);
    if (cursor == arrays.size()) {
      size_t begin = arrays.empty() ? 0 : (arrays.back().end + 2 * kGapBytes) / 16 * 16;
      arrays.push_back({begin, begin + bytes});
      if (arrays.back().end + kGapBytes > size_t(kBytes))
        fail("the test needs more memory");
      checkCuda(cudaMemcpy(constant.base + begin, values.data(), bytes, cudaMemcpyHostToDevice),
                "cudaMemcpy");
    }
    const Array &array = arrays[cursor++];
    checkCuda(cudaMemcpyAsync(data.base + array.begin, constant.base + array.begin, bytes,
                              cudaMemcpyDeviceToDevice, stream.handle),
              "cudaMemcpyAsync");
    return reinterpret_cast<T *>(data.base + array.begin);
  }
  template <typename T>
  void part(const Communicator &group, const T *from, T *to, int64_t count, int64_t blocks,
            int64_t full) {
    cuda::takeShard(stream, {group.rank(), group.size()}, from, to, count, blocks, full);
  }
  void sum(Communicator &group, OneBitTensors tensors, bool compresses) {
    Stream with = stream;
    with.scratch = partials.base;
    with.scratchBytes = kBytes;
    cuda::oneBitAllReduce(with, group, tensors, compresses, blocks.base, "momenta");
  }
  /// Returns their contents when all work is complete; the next run begins.
  std::deque<Bytes> read() {
    checkCuda(cudaStreamSynchronize(stream.handle), "cudaStreamSynchronize");
    Bytes memory(kBytes, 0);
    checkCuda(cudaMemcpy(memory.data(), data.base, memory.size(), cudaMemcpyDeviceToHost),
              "cudaMemcpy");
    checkCuda(cudaMemset(data.base, kGap, kBytes), "cudaMemset");
    std::deque<Bytes> all;
    size_t at = 0;
    for (const Array &array : arrays) {
      for (; at < array.begin; ++at)
        if (memory[at] != kGap)
          fail("something was written before array %zu", all.size());
      all.emplace_back(memory.begin() + int64_t(array.begin), memory.begin() + int64_t(array.end));
      at = array.end;
    }
    cursor = 0;
    return all;
  }

private:
  static constexpr int64_t kBytes = 4 << 20;
  static constexpr size_t kGapBytes = 64;
  static constexpr char kGap = 0x5a;
  struct Array {
    size_t begin, end;
  };
  const Stream &stream;
  DeviceMemory constant, data, blocks, partials;
  std::vector<Array> arrays;
  size_t cursor = 0;
};

/// Returns values whose sums depend on the order and on where they are rounded.
template <typename T> std::vector<T> values(const Rank &rank, int64_t n) {
  std::vector<T> result;
  for (int64_t i = 0; i < n; ++i)
    result.push_back(
        T(float((i * 7919 + rank.rank * 104729) % 9973) * (rank.rank % 2 ? 0.37f : 3.1f)));
  return result;
}

/// Returns the last row with an axis's name; the axis's own if there is no other.
Communicator &gathersOf(const Rank &rank, int axis) {
  int row = axis;
  for (int other = 0; other < int(rank.program->groups.size()); ++other)
    if (rank.program->groups[other].name == std::string(rank.program->mesh[axis].name))
      row = other;
  return rank.group(row);
}

template <typename T, typename Arrays> void exercise(Rank &rank, int axis, Arrays &arrays) {
  Communicator &group = rank.group(axis), &gathers = gathersOf(rank, axis);
  int64_t size = group.size();
  auto some = [&](int64_t n) { return arrays.next(values<T>(rank, n)); };
  auto empty = [&](int64_t n) { return arrays.next(std::vector<T>(size_t(n), T(7))); };
  for (int64_t n : {1001}) {
    T *a = some(n), *b = some(5), *largest = some(n);
    Pending sum = allReduceStart(group, {{a, n}, {b, 5}}, "sum");
    Pending max = allReduceStart(group, {{largest, n}}, "max", Reduce::Max);
    T *sent = some(n), *other = some(3);
    Pending copy = broadcastStart(group, {{sent, n}, {other, 3}}, int(size) - 1, "copy");
    wait(max);
    wait(copy);
    wait(sum);
    allReduce(group, {{a, n}}, "sum of sums");
    barrier(group, "barrier");
    if constexpr (!std::is_same_v<T, int32_t>) {
      T *full = some(n * size), *part = empty(n), *place = some(n * size);
      Pending scatter = reduceScatterStart(
          group, {{full, part, n}, {place, place + group.rank() * n, n}}, "scatter");
      T *own = some(n), *all = empty(n * size), *gathered = empty(n * size);
      Pending gather = allGatherStart(gathers, {{own, all, n}}, "gather");
      wait(gather); // before what started earlier
      wait(scatter);
      allGather(gathers, {{part, gathered, n}, {place + group.rank() * n, place, n}}, "gather");
    }
  }
}

/// Shifts both ways, of several tensors, and all-to-alls of one block and of several.
template <typename T, typename Arrays> void exerciseMoves(Rank &rank, int axis, Arrays &arrays) {
  Communicator &group = rank.group(axis), &moves = gathersOf(rank, axis);
  int64_t size = group.size();
  auto some = [&](int64_t n) { return arrays.next(values<T>(rank, n)); };
  auto empty = [&](int64_t n) { return arrays.next(std::vector<T>(size_t(n), T(7))); };
  T *k = some(1001), *v = some(30), *kNext = empty(1001), *vNext = empty(30), *own = empty(1001);
  Pending there = shiftStart(moves, {{k, kNext, 1001}, {v, vNext, 30}}, "shift");
  wait(there);
  shift(group, {{kNext, own, 1001}}, "shift back", /*back=*/true);
  for (auto [blocks, n] : {std::pair<int64_t, int64_t>{1, 201}, {3, 50}, {40, 7}}) {
    int64_t all = blocks * n * size;
    T *from = some(all), *to = empty(all), *again = empty(all), *beside = some(5 * size),
      *besides = empty(5 * size);
    wait(allToAllStart(moves, {{from, to, n, blocks}, {beside, besides, 5}}, "all-to-all"));
    allToAll(group, {{to, again, n, blocks}}, "all-to-all back");
  }
}

/// Shards of several blocks, few and many, alone and beside another one; shards of full tensors
/// that do not divide evenly, followed by a guard.
template <typename T, typename Arrays> void exerciseParts(Rank &rank, int axis, Arrays &arrays) {
  Communicator &group = rank.group(axis);
  int64_t size = group.size();
  auto some = [&](int64_t n) { return arrays.next(values<T>(rank, n)); };
  auto empty = [&](int64_t n) { return arrays.next(std::vector<T>(size_t(n), T(7))); };
  for (auto [blocks, n] : {std::pair<int64_t, int64_t>{3, 1}, {3, 50}, {33, 7}, {400, 3}}) {
    int64_t part = blocks * n, full = part * size;
    T *from = some(full), *to = empty(part), *taken = empty(part);
    reduceScatter(group, {{from, to, n, blocks}}, "scatter");
    arrays.part(group, from, taken, n, blocks, 0);
    T *gathered = empty(full), *beside = some(5), *besides = empty(5 * size);
    allGather(group, {{to, gathered, n, blocks}, {beside, besides, 5}}, "gather");
  }
  for (int64_t full : {1, 2, 3, 61, 1001}) {
    int64_t n = (full + size - 1) / size;
    T *from = some(full), *to = empty(n), *taken = empty(n), *gathered = empty(full + 1);
    reduceScatter(group, {{from, to, n, 1, full}}, "scatter");
    arrays.part(group, from, taken, n, 1, full);
    allGather(group, {{taken, gathered, n, 1, full}}, "gather");
    T *again = some(full);
    allGather(group, {{to, again, n, 1, full}}, "gather");
  }
}

/// Sums with one bit per element: two steps with their errors, one that a rank spoils, and an exact one.
template <typename Arrays> void exerciseOneBit(Rank &rank, int axis, Arrays &arrays) {
  Communicator &group = rank.group(axis);
  int64_t size = group.size();
  auto some = [&](int64_t n, bool spoilt = false) {
    std::vector<float> all = values<float>(rank, n);
    if (spoilt && group.rank() == size - 1)
      all.back() = NAN;
    return arrays.next(all);
  };
  constexpr int64_t kCounts[] = {5003, 1, 35};
  float *workers[3], *servers[3];
  for (int i = 0; i < 3; ++i) {
    workers[i] = some(kCounts[i]);
    servers[i] = some(oneBitChunk(kCounts[i], size));
  }
  for (int step = 0; step < 4; ++step) {
    float *x = some(kCounts[0]), *y = some(kCounts[1]), *z = some(kCounts[2], step == 1);
    arrays.sum(group,
               {{x, workers[0], servers[0], kCounts[0]},
                {y, workers[1], servers[1], kCounts[1]},
                {z, workers[2], servers[2], kCounts[2]}},
               /*compresses=*/step != 3);
  }
}

template <typename Arrays> void exerciseAll(Rank &rank, Arrays &arrays) {
  for (int axis = 0; axis < int(rank.program->mesh.size()); ++axis) {
    exercise<float>(rank, axis, arrays);
    exercise<BFloat16>(rank, axis, arrays);
    exerciseParts<BFloat16>(rank, axis, arrays);
    exerciseMoves<float>(rank, axis, arrays);
    exerciseOneBit(rank, axis, arrays);
    exerciseMoves<BFloat16>(rank, axis, arrays);
    if (rank.program->mesh.size() > 1) // the other types once
      continue;
    exercise<Half>(rank, axis, arrays);
    exercise<double>(rank, axis, arrays);
    exercise<int32_t>(rank, axis, arrays);
    exercise<int64_t>(rank, axis, arrays);
    exerciseParts<int64_t>(rank, axis, arrays);
  }
}

std::vector<int64_t> countsOf(const Rank &rank) {
  std::vector<int64_t> counts;
  for (int kind = 0; kind < kCollectiveKinds; ++kind)
    rank.forGroups([&](const Communicator &group) {
      counts.push_back(group.count(CollectiveKind(kind)).calls);
      counts.push_back(group.count(CollectiveKind(kind)).bytes);
    });
  return counts;
}

constexpr Axis kThree[] = {{"dp", 3}}, kFour[] = {{"dp", 2}, {"tp", 2}},
               kLonely[] = {{"dp", 2}, {"tp", 1}};
/// Groups with a second communicator for each axis.
constexpr Group kGroupsOfThree[] = {{"dp", {0}}, {"dp", {0}}},
                kGroupsOfFour[] = {{"dp", {0}}, {"tp", {1}}, {"dp", {0}}},
                kGroupsOfLonely[] = {{"dp", {0}}, {"tp", {1}}, {"tp", {1}}};

/// The final contents on the CPU's ranks, which are threads.
struct Expected {
  std::deque<Bytes> arrays;
  std::vector<int64_t> counts;
};
std::vector<Expected> onThreads(const Program &program) {
  std::vector<Expected> expected(size_t(rankCount(program)));
  std::string error = World(program).run(program, nullptr, [&](Rank &rank) {
    HostArrays arrays;
    exerciseAll(rank, arrays);
    expected[size_t(rank.rank)] = {std::move(arrays.arrays), countsOf(rank)};
  });
  EXPECT_EQ(error, "");
  return expected;
}

void compare(const std::deque<Bytes> &found, const Expected &expected, const std::string &what) {
  if (found.size() != expected.arrays.size())
    fail("%s: %zu arrays, %zu expected", what.c_str(), found.size(), expected.arrays.size());
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != expected.arrays[i])
      fail("%s: array %zu differs", what.c_str(), i);
}

void expectSame(const Program &program, uint64_t seeds) {
  std::vector<Expected> expected = onThreads(program);
  int port = freePort();
  auto all = runRanks(rankCount(program), [&](int number) {
    GpuRank gpu(program, number, port);
    DeviceArrays arrays(gpu.device.stream);
    const Expected &mine = expected[size_t(number)];
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      simulated::setSeed(seed + 100 * uint64_t(number));
      exerciseAll(gpu.rank, arrays);
      if (seed == 1 && countsOf(gpu.rank) != mine.counts)
        fail("counts differ");
      compare(arrays.read(), mine, "seed " + std::to_string(seed));
    }
    cudaGraphExec_t graph = capture(gpu, [&] { exerciseAll(gpu.rank, arrays); });
    for (int i = 0; i < 2; ++i) {
      checkCuda(cudaGraphLaunch(graph, gpu.device.stream.handle), "launch");
      compare(arrays.read(), mine, "launch " + std::to_string(i));
    }
    cudaGraphExecDestroy(graph);
    gpu.rank.forGroups([&](Communicator &group) {
      if (group.outstanding() != 0)
        fail("something is under way");
    });
  });
  for (const Ended &each : all)
    EXPECT_EQ(each.code, 0) << each.text;
}

TEST(NcclGroup, ThreeRanksHaveTheBitsOfThreads) {
  expectSame(programOf(kThree, kGroupsOfThree), 3);
}
TEST(NcclGroup, AMeshHasTheBitsOfThreads) { expectSame(programOf(kFour, kGroupsOfFour), 1); }
TEST(NcclGroup, AnAxisOfOneRankCopies) { expectSame(programOf(kLonely, kGroupsOfLonely), 1); }

//===-- Failures ----------------------------------------------------------------------------===//

TEST(NcclGroup, RanksThatDisagreeAreSaidByTheSimulation) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    float *data = deviceFloats(10);
    allReduce(gpu.rank.group(0), {{data, 9 + gpu.rank.rank}}, "h.1.mlp");
    gpu.rendezvous.barrier("the end");
    failOnError(gpu, [&] { gpu.synchronize(); });
  });
  expectNonsense(all, "all_reduce of 9 elements");
}

/// The table of its documentation, not the caller, says what a type is.
TEST(SimulatedNccl, HasTheTypesOfItsTable) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclSuccess);
  DeviceMemory data(16, "numbers");
  for (int number = 0; number < 12; ++number) {
    auto type = ncclDataType_t(number);
    bool known = simulated::bytesOfNccl(number) > 0;
    EXPECT_EQ(known, number < 10) << number; // 10 and 11 have 8 bits, and are not used
    EXPECT_EQ(ncclAllReduce(data.base, data.base, 1, type, ncclSum, comm, nullptr) == ncclSuccess,
              known)
        << number;
  }
  for (auto [type, ours] : {std::pair{ncclFloat32, DType::Float32},
                            {ncclFloat16, DType::Float16},
                            {ncclBfloat16, DType::BFloat16},
                            {ncclFloat64, DType::Float64},
                            {ncclInt32, DType::Int32},
                            {ncclInt64, DType::Int64},
                            {ncclUint8, DType::Bool}})
    EXPECT_EQ(int64_t(simulated::bytesOfNccl(type)), sizeOf(ours)) << nameOf(ours);
  ncclCommAbort(comm);
}

TEST(NcclGroup, ShiftsThatDisagreeAreSaidByTheSimulation) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    float *data = deviceFloats(20);
    shift(gpu.rank.group(0), {{data, data + 10, 9 + gpu.rank.rank}}, "h.1.attn");
    gpu.rendezvous.barrier("the end");
    failOnError(gpu, [&] { gpu.synchronize(); });
  });
  expectNonsense(all, "send of 9 elements");
}

TEST(NcclGroup, WaitingTwiceIsAnError) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    float *data = deviceFloats(10);
    Pending sum = allReduceStart(gpu.rank.group(0), {{data, 10}}, "h.1.mlp");
    EXPECT_EQ(gpu.rank.group(0).outstanding(), 1);
    wait(sum);
    try {
      wait(sum);
    } catch (const Error &error) {
      EXPECT_STREQ(error.what(), "collective #1 of axis dp is waited for twice");
      gpu.synchronize();
      EXPECT_TRUE(gpu.rank.group(0).isComplete(1));
      if (!testing::Test::HasFailure())
        return;
    }
    fail("failed");
  });
  for (const Ended &each : all)
    EXPECT_EQ(each.code, 0) << each.text;
}

TEST(NcclGroup, OtherProgramsAreRefused) {
  int port = freePort();
  auto all = runRanks(2, [&](int number) {
    Program program = programOf(kTwo);
    Stage stage[1];
    stage[0].arenaBytes = 64 * number;
    program.stages = stage;
    GpuRank gpu(program, number, port);
  });
  for (const Ended &each : all) {
    EXPECT_EQ(each.code, 3);
    EXPECT_EQ(each.text.rfind("the ranks run different programs: rank 0 test (0 and 0 bytes", 0),
              0u)
        << each.text;
  }
}

} // namespace
} // namespace partita_rt::cuda
