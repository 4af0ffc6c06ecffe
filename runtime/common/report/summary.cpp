// Prints the closing lines of a run (summary.h).

#include "common/report/summary.h"

#include "common/grouped.h"
#include "common/mesh/gathered.h"
#include "common/mesh/mesh.h"
#include "common/target.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace partita_rt {

void writeLine(const char *label, const std::string &text) {
  std::printf("%-14s %s\n", label, text.c_str());
}

void printCollectives(const Rank &rank, const Issued &step, const Steps &steps, int64_t last) {
  bool any = false;
  for (const auto &[name, group] : step.groups)
    for (int kind = 0; kind < kCollectiveKinds; ++kind) {
      const CollectiveCount &issued = group.counts[kind];
      if (issued.calls == 0)
        continue;
      writeLine(any ? "" : "collectives",
                grouped(issued.calls) + " " + nameOf(CollectiveKind(kind)) + " over " + name +
                    " (" + std::to_string(group.ranks) + " ranks), " + grouped(issued.bytes) +
                    " bytes per step and rank" + ofStage(*rank.program, rank.stageNumber) +
                    steps.text());
      any = true;
    }
  if (!any)
    writeLine("collectives", "none");
  bool allLike = steps.part == Steps::Exact && !steps.exact.doubling && last <= steps.exact.until;
  if (allLike)
    writeLine("", "no step of this run was compressed: step " + grouped(steps.exact.until + 1) +
                      " is the first; --census lists both kinds");
  else if (steps.part != Steps::All)
    writeLine("", "other steps send other collectives; --census lists both");
}

void printMessages(const Rank &rank, const Issued &step) {
  const char *label = "messages";
  for (size_t row = 0; row < step.messages.size(); ++row) {
    const Channel &channel = rank.program->channels[int64_t(row)];
    const MessageCount &count = step.messages[row];
    if (count.messages == 0)
      continue;
    bool sends = channel.from == rank.stageNumber;
    writeLine(label, grouped(count.messages) + (sends ? " sent to" : " received from") + " stage " +
                         std::to_string(sends ? channel.to : channel.from) + " over " +
                         channel.name + ", " + grouped(count.bytes) +
                         " bytes per step and rank of stage " + std::to_string(rank.stageNumber));
    label = "";
  }
}

ReducedCount reducedByAll(Rank &rank) {
  std::vector<int64_t> mine(2);
  rank.forGroups([&](const Communicator &group) {
    mine[0] += group.reduced().inPolls;
    mine[1] += group.reduced().inWaits;
  });
  std::vector<int64_t> all = gathered(rank, mine, "the summary");
  ReducedCount sum;
  for (size_t r = 0; r < all.size(); r += 2) {
    sum.inPolls += all[r];
    sum.inWaits += all[r + 1];
  }
  return sum;
}

void printOverlap(const ReducedCount &reduced) {
  int64_t all = reduced.inPolls + reduced.inWaits;
  if (all > 0)
    writeLine("", "overlapped " + std::to_string(100 * reduced.inPolls / all) +
                      " %: " + grouped(reduced.inPolls) + " bytes of sums made between kernels, " +
                      grouped(reduced.inWaits) + " in waits");
}

void printTransfers(const TransferBytes &step) {
  if (step.toHost + step.toDevice > 0)
    writeLine("transfers", grouped(step.toHost) + " bytes to the host, " + grouped(step.toDevice) +
                               " to the device per step and rank");
}

/// Reads a number of the process's status: "VmHWM:" is its peak of resident memory, "RssFile:" the
/// resident part of mapped files. 0 if the system does not report it. (getrusage would include the
/// program that this one replaced by exec.)
static int64_t statusBytes(const std::string &key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.compare(0, key.size(), key) == 0)
      return std::atoll(line.c_str() + key.size()) * 1024;
  return 0;
}

void printMemory(const Rank &rank, const RunOptions &options) {
  const Program &program = *rank.program;
  for (int number = 0; number < int(program.stages.size()); ++number) {
    const Stage &stage = program.stages[number];
    int64_t sum = 0;
    std::string parts;
    for (const MemoryPart &part : deviceParts(program, stage, &options)) {
      sum += part.bytes;
      parts += (parts.empty() ? "" : ", ") + grouped(part.bytes) + " " + part.what;
    }
    writeLine(number == 0 ? "memory" : "",
              grouped(sum) + " bytes per rank" + ofStage(program, number) + ": " + parts);
    if (stage.hostBytes + stage.pinnedBytes > 0)
      writeLine("", grouped(stage.hostBytes + stage.pinnedBytes) +
                        " bytes of host memory: " + grouped(stage.hostBytes) + " persistent, " +
                        grouped(stage.pinnedBytes) + " pinned");
  }
  if (std::string text = deviceMemoryText(rank); !text.empty())
    writeLine("", text);
  if (int64_t bytes = statusBytes("VmHWM:"))
    writeLine("", grouped(bytes) + " bytes of resident memory at the peak of the process, " +
                      grouped(statusBytes("RssFile:")) +
                      " bytes of mapped files (code, data) at its end");
  for (const SummaryLine &line : targetLines(rank))
    writeLine(line.title.c_str(), line.text);
}

} // namespace partita_rt
