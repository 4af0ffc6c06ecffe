//===- EndingSignals.cpp - signals that ask this process to end -----------------------------===//
//
// A handler may use plain memory only, and signals belong to the process: hence the globals.
//
//===------------------------------------------------------------------------------------------===//

#include "tools/partita/Run/EndingSignals.h"
#include "runtime/include/partita_rt/exit_status.h"
#include <csignal>

using namespace partita::tool;

static volatile sig_atomic_t interrupted = 0; ///< the last signal to this process
static volatile sig_atomic_t arrived = 0;     ///< number of signals so far
static void noteSignal(int signal) {
  interrupted = signal;
  arrived = arrived + 1;
}

void partita::tool::noteEndingSignals() {
  for (int signal : partita_rt::kEndingSignals) {
    struct sigaction action{};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN)
      continue;
    action = {};
    action.sa_handler = noteSignal;
    sigaction(signal, &action, nullptr);
  }
}

int partita::tool::interruptingSignal() { return interrupted; }

int partita::tool::arrivedSignals() { return arrived; }
