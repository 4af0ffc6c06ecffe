// The CPU target: host and device are one (common/target.h).

#include "common/target.h"

#include "common/grouped.h"
#include "common/mesh/launch.h"
#include "common/mesh/message.h"
#include "cpu/groups/group.h"
#include "cpu/kernels/blas_buffers.h"
#include "cpu/kernels/storage.h"
#include "cpu/process.h"
#include "cpu/watch/waits.h"
#include "partita_rt/random.h"
#include "partita_rt/replica_hash.h"

#include <cstring>

namespace partita_rt {

bool deviceIsHost() { return true; }

void readDevice(const Rank &, void *to, const void *device, int64_t bytes) {
  std::memcpy(to, device, size_t(bytes));
}

void writeDevice(const Rank &, void *device, const void *from, int64_t bytes) {
  std::memcpy(device, from, size_t(bytes));
}

std::vector<uint64_t> hashRuns(const Rank &, const std::vector<HashedRun> &runs, size_t sums) {
  std::vector<uint64_t> result(sums);
  for (const HashedRun &run : runs)
    result[run.sum] += replicaHash(run.data, run.bytes, run.firstWord);
  return result;
}

template <typename T>
void drawNormal(const Rank &, T *values, int64_t n, uint64_t key, uint64_t from, double mean,
                double std) {
  throughFloat(values, n, false, [&](float *to, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = float(mean + standardNormal(key, from + uint64_t(first + i)) * std);
  });
}
#define DRAW(T)                                                                                    \
  template void drawNormal(const Rank &, T *, int64_t, uint64_t, uint64_t, double, double);
FOR_STORAGE(DRAW)
#undef DRAW

void sendInputs(Rank &, int64_t) {}

void noteSlot(const Rank &rank) {
  if (rank.waits)
    rank.waits->noteSlot(rank.slot);
}

void noteLayer(const Rank &rank) {
  if (rank.waits)
    rank.waits->noteLayer(rank.slot.layer);
}

const RankPosition *positionOf(const Rank &rank, int other) {
  return rank.waits ? rank.waits->positionOf(other) : nullptr;
}

void tune(Rank &, const std::vector<void (*)(Rank &)> &, const std::string &) {
  fail("%s", whyNotHere("--tune").c_str());
}

std::vector<MemoryPart> deviceParts(const Program &program, const Stage &stage,
                                    const RunOptions *options) {
  return {{"persistent", stage.persistentBytes},
          {"arena", arenaBytes(stage, options)},
          {"inputs", inputBytes(program)}};
}

std::string deviceMemoryText(const Rank &rank) {
  int64_t staging = 0;
  auto add = [&](const Communicator &group) {
    if (auto *ordered = dynamic_cast<const OrderedGroup *>(&group))
      ordered->forStaging(
          [&](const void *at, int64_t bytes) { staging += residentBytes(at, bytes); });
  };
  rank.forGroups(add);
  add(*rank.world);
  std::string text = staging > 0 ? grouped(staging) + " bytes of the collectives' staging, " : "";
  return text + grouped(blasBuffersResident()) +
         " bytes of OpenBLAS's packing buffers, this process";
}
std::vector<SummaryLine> targetLines(const Rank &) { return {}; }

std::string whyNotHere(const std::string &option) {
  return option == "--tune" ? "matmuls are BLAS's here; programs for GPUs are tuned" : "";
}

bool call(Rank &rank, void (*function)(Rank &), const std::function<void()> &) {
  function(rank);
  endSlots(rank);
  rank.forChannels([](ChannelEnd &end) { markEnd(end, "the end of a step"); });
  return true;
}

} // namespace partita_rt
