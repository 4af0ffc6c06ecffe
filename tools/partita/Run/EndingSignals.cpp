//===- EndingSignals.cpp - signals that ask this process to end -----------------------------===//
//
// A handler may use plain memory only, and signals belong to the process: hence the globals.
//
//===------------------------------------------------------------------------------------------===//

#include "tools/partita/Run/EndingSignals.h"
#include "runtime/include/partita_rt/exit_status.h"
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <unistd.h>

using namespace partita::tool;

static volatile sig_atomic_t interrupted = 0; ///< the last signal that counted
static volatile sig_atomic_t arrived = 0;     ///< number of these so far
static volatile int64_t countedAt = 0;        ///< when it came, in nanoseconds

/// Ranks count the same way (runtime/common/run/interruption.cpp).
static void noteSignal(int signal) {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  int64_t now = int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  if (arrived > 0 && now - countedAt < partita_rt::kOneRequest)
    return;
  countedAt = now;
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
    for (int other : partita_rt::kEndingSignals) // one of them at a time
      sigaddset(&action.sa_mask, other);
    sigaction(signal, &action, nullptr);
  }
}

int partita::tool::interruptingSignal() { return interrupted; }

int partita::tool::arrivedSignals() { return arrived; }

void partita::tool::pauseFor(double seconds) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(seconds));
  while (!interrupted && Clock::now() < end)
    usleep(10'000);
}

bool partita::tool::waitUntil(double seconds, llvm::function_ref<bool()> isOver, double every) {
  using Clock = std::chrono::steady_clock;
  for (Clock::time_point begin = Clock::now(); !isOver(); pauseFor(every))
    if (interrupted || std::chrono::duration<double>(Clock::now() - begin).count() >= seconds)
      return false;
  return true;
}
