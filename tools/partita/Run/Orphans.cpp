//===- Orphans.cpp - ranks whose launcher has ended before them -----------------------------===//

#include "tools/partita/Run/Orphans.h"
#include "runtime/include/partita_rt/own_clock.h"
#include "runtime/include/partita_rt/start_marks.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/Patience.h"
#include "llvm/ADT/STLExtras.h"
#include <csignal>
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

bool partita::tool::endOrphans(RanksBelow &below, StoppedRanks &stopped, const StartMarks &marks,
                               int passed) {
  // Ranks end, or leave a mark that they are about to, if somebody has told them; then they get SIGTERM
  // and, still without a mark, SIGKILL.
  int toMark = secondsOf(Patience::Mark), toEnd = toMark + secondsOf(Patience::Orphans);
  below.adopt();
  partita_rt::OwnClock clock;
  double before = 0;
  bool isTold = false; // by this process; whether by the launcher, the ranks say
  bool wasAsked = false;
  for (std::vector<pid_t> ranks; !(ranks = below.find()).empty(); usleep(kLookEvery)) {
    double seconds = clock.advance(), passedSeconds = seconds - before;
    before = seconds;
    int signal = passed == arrivedSignals() ? 0 : interruptingSignal();
    passed = arrivedSignals();
    wasAsked |= signal != 0;
    if (seconds > toMark && !signal && !haveBeenAsked(ranks, marks))
      signal = seconds > toEnd ? SIGKILL : isTold ? 0 : SIGTERM;
    isTold |= signal != 0;
    for (pid_t rank : ranks)
      if (signal)
        kill(rank, signal);
    if (std::optional<pid_t> rank = stopped.look(ranks, passedSeconds))
      kill(*rank, SIGKILL);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  // A launcher that has ended may have left another one behind, whose ranks are still to come.
  if (int signal = interruptingSignal())
    for (pid_t process : below.findProcesses())
      kill(process, signal == SIGUSR1 ? SIGTERM : signal);
  return isTold && !wasAsked;
}
