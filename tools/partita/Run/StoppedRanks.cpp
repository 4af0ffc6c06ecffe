//===- StoppedRanks.cpp - ranks that a signal has stopped -----------------------------------===//

#include "tools/partita/Run/StoppedRanks.h"
#include "runtime/include/partita_rt/machine.h"

using namespace partita::tool;

/// Seconds that the ranks have to report a stopped one, after the time-out, and to end it.
static constexpr double kForRanks = 4;

/// Has a signal stopped the process? One that a debugger holds (state t) does not count.
static bool isStopped(pid_t process) { return partita_rt::processState(process) == 'T'; }

std::optional<pid_t> StoppedRanks::look(llvm::ArrayRef<pid_t> ranks, double passed) {
  std::map<pid_t, double> now;
  for (pid_t rank : ranks)
    if (isStopped(rank)) {
      auto before = stopped.find(rank);
      now[rank] = before == stopped.end() ? 0 : before->second + passed;
    }
  stopped = std::move(now);
  all = !ranks.empty() && stopped.size() == ranks.size();
  double limit = alone ? timeout : (all ? 2 * timeout : timeout) + kForRanks;
  for (auto [rank, seconds] : stopped)
    if (seconds >= limit)
      return rank;
  return std::nullopt;
}
