//===- Orphans.cpp - ranks whose launcher has ended before them -----------------------------===//

#include "tools/partita/Run/Orphans.h"
#include "runtime/include/partita_rt/own_clock.h"
#include "runtime/include/partita_rt/start_marks.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/ForcedEnd.h"
#include "tools/partita/Run/Patience.h"
#include "llvm/ADT/STLExtras.h"
#include <csignal>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

/// Microseconds between two looks.
static constexpr int kLookEvery = 20'000;

/// Does a rank know that a signal ends the run? Then all of them end with its step.
static bool haveBeenAsked(ArrayRef<pid_t> ranks, const StartMarks &marks) {
  return llvm::any_of(ranks, [&](pid_t rank) {
    return marks.has((partita_rt::kAskedMark + std::to_string(rank)).c_str());
  });
}

namespace {
/// Other processes of a launcher that has ended, such as a torchrun that a script has started. They would start ranks again.
class Leftovers {
public:
  explicit Leftovers(const RanksBelow &below) : below(below) {}
  /// Ends them by force. Are there any?
  bool end(double now) {
    std::vector<pid_t> processes = below.findProcesses();
    if (processes.empty() || force.secondsSince(now) > 2 * kToEnd) // of another user
      return false;
    force.send(processes, now);
    return true;
  }

private:
  static constexpr int kToEnd = 5;
  const RanksBelow &below;
  ForcedEnd force{kToEnd};
};
} // namespace

bool partita::tool::endOrphans(RanksBelow &below, StoppedRanks &stopped, const StartMarks &marks,
                               int passed, bool leavesOthers) {
  // Ranks end, or leave a mark that they are about to, if somebody has asked them; then they get SIGTERM
  // and, still without a mark, SIGKILL.
  int toMark = secondsOf(Patience::Mark);
  ForcedEnd force(secondsOf(Patience::Orphans));
  below.adopt();
  Leftovers leftovers(below);
  partita_rt::OwnClock clock;
  double before = 0;
  bool wasAsked = false; // by a signal; whether by the launcher, the ranks say
  for (;; usleep(kLookEvery)) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    double seconds = clock.advance(), passedSeconds = seconds - before;
    before = seconds;
    std::vector<pid_t> ranks = below.find();
    bool leaves = leavesOthers && !interruptingSignal();
    if (ranks.empty() && (leaves || !leftovers.end(seconds)))
      return force.hasSent() && !wasAsked;
    int signal = passed == arrivedSignals() ? 0 : interruptingSignal();
    passed = arrivedSignals();
    wasAsked |= signal != 0;
    for (pid_t rank : ranks)
      if (signal)
        kill(rank, signal);
    if (signal)
      force.noteAsked(ranks, std::max<double>(seconds, toMark));
    else if (seconds > toMark && !haveBeenAsked(ranks, marks))
      force.send(ranks, seconds);
    if (std::optional<pid_t> rank = stopped.look(ranks, passedSeconds))
      kill(*rank, SIGKILL);
  }
}
