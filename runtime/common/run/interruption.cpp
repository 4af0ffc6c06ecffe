// Handles signals (interruption.h). A handler may use plain memory and atomics only, and signals
// belong to the process: hence the globals.

#include "common/run/interruption.h"

#include "common/fixed_text.h"
#include "common/start_marks.h"
#include "common/temporary_file.h"
#include "partita_rt/exit_status.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <unistd.h>

namespace partita_rt {

namespace {

std::atomic<int> waiting{0}; ///< ranks of this process that defer signals
std::atomic<int> noted{0};
std::atomic<int64_t> notedAt{0};
std::atomic<int> endedBy{0}; ///< the signal that all ranks have stopped for
std::atomic<bool> printed{false};
std::atomic<bool> isEnding{false};
std::atomic<const OthersEndFinder *> othersEnd{nullptr};
bool prints = true;
char program[256];
char folder[PATH_MAX];

/// A line about a signal, without its end.
FixedText lineOf(const char *before, int signal) {
  FixedText line;
  // Replace the line of progress.
  line << (isatty(STDERR_FILENO) ? "\r\033[K" : "") << program << before << signalName(signal);
  return line;
}

void printWithEnd(FixedText &line) {
  line << "\n";
  ssize_t ignored = ::write(STDERR_FILENO, line.get(), std::strlen(line.get()));
  (void)ignored; // nowhere to report an error
}

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

OthersEnd findOthersEnd(bool ends, FixedText &deaths) {
  const OthersEndFinder *finder = othersEnd;
  return finder && !endedBy ? finder->find(ends, deaths) : OthersEnd::None;
}

/// Prints why the process ends, unless another one does, and then writes files about it.
void sayEnd(int signal) {
  FixedText deaths;
  OthersEnd others = findOthersEnd(/*ends=*/true, deaths);
  if ((others == OthersEnd::Unsaid || (others == OthersEnd::None && prints)) && !endedBy) {
    FixedText line = lineOf(": ended by ", signal);
    printWithEnd(line << (deaths.isEmpty() ? "" : " after ") << deaths.get());
  }
  if (const OthersEndFinder *finder = othersEnd; finder && !endedBy)
    finder->record(others, deaths);
}

extern "C" void takeSignal(int signal) {
  int before = errno;
  if (FixedText deaths; waiting > 0 && findOthersEnd(/*ends=*/false, deaths) == OthersEnd::None) {
    int64_t time = now();
    int none = 0;
    if (noted == 0)
      notedAt = time;
    if (noted.compare_exchange_strong(none, signal)) {
      noteAsked();
      announceEnding(signal);
      if (const OthersEndFinder *finder = othersEnd)
        finder->foresee();
    }
    if (none == 0 || time - notedAt < kOneRequest) {
      errno = before;
      return;
    }
  }
  while (isEnding.exchange(true)) // on another thread, which ends the process
    pause();
  sayEnd(signal);
  removeTemporaryFiles();
  endBySignal(endedBy ? int(endedBy) : signal);
}

void copyText(char *to, size_t size, const char *from) {
  std::strncpy(to, from, size - 1);
  to[size - 1] = 0;
}

} // namespace

const char *signalName(int signal) {
  return signal == SIGINT    ? "SIGINT"
         : signal == SIGTERM ? "SIGTERM"
         : signal == SIGHUP  ? "SIGHUP"
         : signal == SIGUSR1 ? "SIGUSR1"
                             : "a signal";
}

void handleSignals(const char *name, bool isFirst) {
  copyText(program, sizeof(program), name);
  prints = isFirst;
  findMarksFolder();
  for (int signal : kEndingSignals) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN)
      continue;
    action = {};
    action.sa_handler = takeSignal;
    action.sa_flags = SA_RESTART;
    for (int other : kEndingSignals) // one of them at a time
      sigaddset(&action.sa_mask, other);
    sigaction(signal, &action, nullptr);
  }
}

void setCheckpointFolder(const std::string &path) {
  copyText(folder, sizeof(folder), path.c_str());
}

void SignalsWait::begin() {
  waits = folder[0] != 0;
  waiting += waits;
}

void SignalsWait::end() {
  if (waits)
    --waiting;
  waits = false;
}

void setOthersEndFinder(const OthersEndFinder *finder) { othersEnd = finder; }

int notedSignal() { return noted; }

void setEndedBy(int signal) { endedBy = signal; }

void announceEnding(int signal) {
  std::signal(SIGPIPE, SIG_IGN);
  if (prints && !printed.exchange(true)) { // both the handler and a rank may call this
    FixedText line = lineOf(": ", signal);
    printWithEnd(line << ": finishing the step and writing a checkpoint to " << folder
                      << "; signal again after a second to stop at once");
  }
}

} // namespace partita_rt
