// Comparing what was issued with what was announced (census.h).

#include "common/run/census.h"

#include "common/run/mesh.h"
#include "common/run/metrics.h"
#include "partita_rt/printable.h"

namespace partita_rt {

Issued::Issued(const Rank &rank) : transfers(transferred(rank)) {
  for (int axis = 0; axis < rank.program->mesh.size(); ++axis)
    for (int kind = 0; kind < kCollectiveKinds; ++kind)
      rank.forGroups(axis, [&](const Communicator &group) {
        counts[axis][kind].calls += group.count(CollectiveKind(kind)).calls;
        counts[axis][kind].bytes += group.count(CollectiveKind(kind)).bytes;
      });
}

void checkCensus(const Rank &rank, const Issued &before, const Issued &after) {
  const Program &program = *rank.program;
  const Table<CensusEntry> &census = rank.stage->census;
  if (census.empty())
    return;
  for (int axis = 0; axis < program.mesh.size(); ++axis)
    for (int kind = 0; kind < kCollectiveKinds && program.mesh[axis].size > 1; ++kind) {
      CollectiveCount announced;
      for (const CensusEntry &entry : census)
        if (int(entry.kind) == kind && std::string(entry.axis) == program.mesh[axis].name) {
          announced.calls += entry.calls;
          announced.bytes += entry.bytes;
        }
      int64_t calls = after.counts[axis][kind].calls - before.counts[axis][kind].calls;
      int64_t bytes = after.counts[axis][kind].bytes - before.counts[axis][kind].bytes;
      if (calls != announced.calls || bytes != announced.bytes)
        fail("the first step%s issued %lld %s of %lld bytes over axis %s, the census announces "
             "%lld of %lld bytes",
             ofStage(program, rank.stageNumber).c_str(),
             (long long)calls, nameOf(CollectiveKind(kind)), (long long)bytes,
             program.mesh[axis].name, (long long)announced.calls, (long long)announced.bytes);
    }
}

void checkTransfers(const Rank &rank, const TransferBytes &before, const TransferBytes &after) {
  const TransferBytes &announced = rank.stage->transfers;
  int64_t toHost = after.toHost - before.toHost, toDevice = after.toDevice - before.toDevice;
  if (toHost != announced.toHost || toDevice != announced.toDevice)
    fail("the first step%s copied %lld bytes to the host and %lld to the device, the program "
         "announces %lld and %lld",
         ofStage(*rank.program, rank.stageNumber).c_str(),
         (long long)toHost, (long long)toDevice, (long long)announced.toHost,
         (long long)announced.toDevice);
}

void checkNothingUnderWay(const Rank &rank) {
  if (int64_t n = transfersUnderWay(rank))
    fail("%lld copies between device and host were started and not waited for in step %lld",
         (long long)n, (long long)rank.step);
  for (int axis = 0; axis < rank.program->mesh.size(); ++axis)
    rank.forGroups(axis, [&](const Communicator &group) {
      if (int n = group.outstanding())
        fail("%d collectives over axis %s were started and not waited for in step %lld", n,
             group.axis(), (long long)rank.step);
    });
}

std::string censusText(const Program &program) {
  std::string text;
  for (int number = 0; number < int(program.stages.size()); ++number) {
    const Table<CensusEntry> &census = program.stages[number].census;
    text += "collectives of one train_step, per rank" + ofStage(program, number) + ":\n";
    for (const CensusEntry &entry : census)
      text += "  " + grouped(entry.calls) + " " + nameOf(entry.kind) + " over " + entry.axis +
              ", " + grouped(entry.bytes) + " bytes: " + printable(entry.why) + "\n";
    if (census.empty())
      text += "  none\n";
  }
  return text;
}

} // namespace partita_rt
