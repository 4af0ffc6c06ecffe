// The CUDA target's functions for common code (common/target.h), on a rank's GPU and its
// collectives.

#include "common/target.h"

#include "common/grouped.h"
#include "common/mesh/launch.h"
#include "common/run_options.h"
#include "cuda/cuda.h"
#include "cuda/gpu/gpu.h"
#include "cuda/ranks/nccl_group.h"
#include "partita_rt/cuda/kernels.h"
#include "partita_rt/replica_hash.h"
#include "processes/host_group.h"

#include <algorithm>

namespace partita_rt {

using cuda::checkCuda;
using cuda::Gpu;

bool deviceIsHost() { return false; }

void readDevice(const Rank &rank, void *to, const void *device, int64_t bytes) {
  Gpu::of(rank).finish();
  if (bytes > 0)
    checkCuda(cudaMemcpy(to, device, size_t(bytes), cudaMemcpyDefault), "copying to the host");
}

void writeDevice(const Rank &rank, void *device, const void *from, int64_t bytes) {
  Gpu::of(rank).finish();
  if (bytes == 0)
    return;
  checkCuda(cudaMemcpy(device, from, size_t(bytes), cudaMemcpyDefault), "copying to the GPU");
  // A copy from pageable memory may return before all of it has arrived, and the rank's stream does
  // not wait for the legacy one.
  checkCuda(cudaStreamSynchronize(nullptr), "copying to the GPU");
}

/// The arena, which has nothing between two functions of the program, has the sums: as many at once
/// as fit.
std::vector<uint64_t> hashRuns(const Rank &rank, const std::vector<HashedRun> &runs, size_t sums) {
  std::vector<uint64_t> result(sums);
  const cuda::Stream &stream = rank.device->stream;
  size_t most = size_t(rank.stage->arenaBytes) / sizeof(uint64_t);
  if (most == 0 && sums > 0)
    fail("a program without an arena has no memory for hashes");
  for (size_t begin = 0; begin < sums; begin += most) {
    size_t count = std::min(most, sums - begin);
    int64_t bytes = int64_t(count * sizeof(uint64_t));
    auto *some = reinterpret_cast<uint64_t *>(rank.arenaBase);
    checkCuda(cudaMemsetAsync(some, 0, size_t(bytes), stream.handle), "cudaMemsetAsync");
    for (const HashedRun &run : runs) {
      if (run.sum < begin || run.sum >= begin + count)
        continue;
      if (run.home == Home::Host)
        result[run.sum] += replicaHash(run.data, run.bytes, run.firstWord);
      else
        cuda::addReplicaHash(stream, some + (run.sum - begin), run.data, run.bytes, run.firstWord);
    }
    std::vector<uint64_t> read(count);
    readDevice(rank, read.data(), some, bytes);
    for (size_t i = 0; i < count; ++i)
      result[begin + i] += read[i];
  }
  return result;
}

template <typename T>
void drawNormal(const Rank &rank, T *values, int64_t n, uint64_t key, uint64_t first, double mean,
                double std) {
  cuda::drawNormal(rank.device->stream, values, n, key, first, mean, std);
}
template void drawNormal(const Rank &, float *, int64_t, uint64_t, uint64_t, double, double);
template void drawNormal(const Rank &, Half *, int64_t, uint64_t, uint64_t, double, double);
template void drawNormal(const Rank &, BFloat16 *, int64_t, uint64_t, uint64_t, double, double);

void sendInputs(Rank &rank, int64_t microBatches) { Gpu::of(rank).sendInputs(rank, microBatches); }

bool call(Rank &rank, void (*function)(Rank &), const std::function<void()> &meanwhile) {
  return Gpu::of(rank).call(rank, function, meanwhile);
}

void noteSlot(const Rank &) {}
void noteLayer(const Rank &) {}

const RankPosition *positionOf(const Rank &rank, int other) {
  auto *world = dynamic_cast<const processes::HostGroup *>(rank.world);
  return other == rank.rank ? rank.position : world ? world->positionOf(other) : nullptr;
}

void tune(Rank &rank, const std::vector<void (*)(Rank &)> &functions, const std::string &path) {
  Gpu::of(rank).tune(rank, functions, path);
}

/// Lists the compiler's ledger, one allocation each, and cuDNN's workspace if the user asks for it.
/// Excludes CUDA's context and NCCL's buffers.
std::vector<MemoryPart> deviceParts(const Program &program, const Stage &stage,
                                    const RunOptions *options) {
  std::vector<MemoryPart> parts = {{"persistent", stage.persistentBytes},
                                   {"arena", arenaBytes(stage, options)},
                                   {"inputs", inputBytes(program)},
                                   {"scratch", stage.scratchBytes},
                                   {"workspace of matmuls", cuda::kMatmulWorkspace}};
  if (int64_t bytes = cuda::fusedWorkspaceBytes())
    parts.push_back({"workspace of cuDNN's attention", bytes});
  return parts;
}

std::string deviceMemoryText(const Rank &rank) {
  int64_t announced = 0, staging = 0;
  for (const MemoryPart &part : deviceParts(*rank.program, *rank.stage, rank.options))
    announced += part.bytes;
  rank.forGroups([&](const Communicator &group) {
    if (auto *nccl = dynamic_cast<const cuda::NcclGroup *>(&group))
      staging += nccl->stagingBytes();
  });
  int64_t taken = Gpu::of(rank).takenBytes();
  return grouped(taken) + " bytes less free on the GPU than before: " + grouped(announced) +
         " as announced, " + (staging ? grouped(staging) + " staging of collectives, " : "") +
         grouped(taken - announced - staging) + " by libraries (NCCL's buffers, kernels' code)";
}
/// The kernels of attention, if there is a choice; matmuls of a tuned program that tuning made no
/// choice for; a step that was to be timed and did not come.
std::vector<SummaryLine> targetLines(const Rank &rank) {
  Gpu &gpu = Gpu::of(rank);
  std::vector<SummaryLine> lines;
  if (std::string text = gpu.attentionText(); !text.empty())
    lines.push_back({"attention", text});
  if (int64_t without = gpu.matmuls().countWithoutChoice())
    lines.push_back({"untuned", grouped(without) + " shapes of matmuls have no choice in " +
                                    matmulsPath(*rank.options) +
                                    "; --tune makes those of training steps and of evaluation"});
  if (int64_t step = gpu.stepLeftToTime())
    lines.push_back({"kernels", "none is timed: the run has no step " + grouped(step) +
                                    ", which PARTITA_RT_KERNEL_TIMES names"});
  return lines;
}

std::string whyNotHere(const std::string &option) {
  return option == "--threads" ? "the program computes on GPUs" : "";
}

} // namespace partita_rt
