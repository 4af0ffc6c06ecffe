// The exit statuses of a program, and what ends it, for whoever may start it again. The compiler's
// `partita run` uses them too, so this header includes no other header of the runtime.

#ifndef PARTITA_RT_EXIT_STATUS_H
#define PARTITA_RT_EXIT_STATUS_H

#include <csignal>
#include <unistd.h>

namespace partita_rt {

/// The signals that ask a run to end: with a checkpoint, and with their own exit status.
constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
inline bool isEndingSignal(int signal) {
  for (int each : kEndingSignals)
    if (each == signal)
      return true;
  return false;
}
/// Launchers send a signal twice, to a process and to its group, or one after another: those within so many nanoseconds
/// after the first are the same request.
constexpr long long kOneRequest = 1'000'000'000;

/// An error before a step was complete, by which the program has ended itself: starting it again would only repeat it.
/// Also the status of `partita run` if a restart has shown that a step's result would recur.
constexpr int kRefused = 1;
/// What has ended the program need not recur: it had completed a step, another rank has died or stopped, or memory or
/// arithmetic is faulty. Started again, it may go on from its newest checkpoint. `partita run` ends with it, too, if the
/// program or a rank of it was killed and no restart is left.
constexpr int kFailedWhileTraining = 3;

/// Returns the signal that a launcher or a shell reports in its status, as 128 more, for one of its
/// processes; or 0. (ssh, and mpirun whose ssh has failed, end with 255.)
inline int signalIn(int status) { return status > 128 && status - 128 < NSIG ? status - 128 : 0; }

/// Ends the process by the signal, with the default action; the first process of a container, for which
/// there is none, with exit status 128 + signal. Handlers may call it.
[[noreturn]] inline void endBySignal(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t its; // its own handler blocks it
  sigemptyset(&its);
  sigaddset(&its, signal);
  pthread_sigmask(SIG_UNBLOCK, &its, nullptr);
  raise(signal);
  _exit(128 + signal);
}

} // namespace partita_rt

#endif // PARTITA_RT_EXIT_STATUS_H
