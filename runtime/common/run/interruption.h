// SIGINT, SIGTERM, SIGHUP and SIGUSR1 (by which schedulers announce the end of a job): the process
// prints one line, removes its temporary files and ends by the signal. While it trains with a folder
// for checkpoints, the first signal is only noted: the ranks finish the step, save, and then end by
// that signal. A signal that was ignored when the program started (nohup) remains ignored.
//
// Launchers send a signal twice (`timeout` to the process and to its group, a terminal to the group
// and then `partita run`), so a second one counts only if it comes at least a second after the first.

#ifndef PARTITA_RT_COMMON_RUN_INTERRUPTION_H
#define PARTITA_RT_COMMON_RUN_INTERRUPTION_H

#include "common/fixed_text.h"

#include <cstdint>
#include <string>

namespace partita_rt {

/// Installs the handlers. Only the first process of a launch prints.
void handleSignals(const char *program, bool isFirst);
/// Sets the folder for checkpoints, "" for none; call it before ranks start.
void setCheckpointFolder(const std::string &folder);

/// A scope in which signals are deferred: from begin() to end() a first signal is only noted, if
/// there is a folder for checkpoints.
class SignalsWait {
public:
  SignalsWait() = default;
  ~SignalsWait() { end(); }
  void begin();
  SignalsWait(const SignalsWait &) = delete;
  SignalsWait &operator=(const SignalsWait &) = delete;
  void end();

private:
  bool waits = false;
};

/// What the handler learns of other ranks' end.
enum class OthersEnd : uint8_t {
  None,     ///< all run, have ended by themselves, or are ended by a launcher as this one is
  Reported, ///< another process prints why the run ends, or has
  Unsaid,   ///< this one has to
};
/// The functions by which the handler asks for it, and acts on it. If a rank has died or failed, no signal is
/// deferred, since the step cannot be finished.
struct OthersEndFinder {
  /// Appends which ranks died, if any did: "rank 1 died; it was in step 4; ...". `ends`: this process is about to,
  /// and prints what is unsaid.
  OthersEnd (*find)(bool ends, FixedText &deaths);
  /// Called when that is printed, since a launcher may kill the process within milliseconds: writes files.
  void (*record)(OthersEnd what, const FixedText &deaths);
  /// Called when a signal is deferred. A launcher that has sent it because a rank was killed elsewhere kills this
  /// process soon.
  void (*foresee)();
};
/// `finder` stays; null: there is none.
void setOthersEndFinder(const OthersEndFinder *finder);

/// Returns the signal that was noted; 0 if none was.
int notedSignal();
/// Prints, once, how this process handles a signal that it or another rank's process has noted. From then on a closed
/// standard output does not end the process (SIGPIPE is ignored): its reader, such as tee, may have got the signal too.
void announceEnding(int signal);
/// Records that all ranks have stopped for this signal: a process that the launcher signals from
/// now on ends by this one, and prints nothing.
void setEndedBy(int signal);
/// "SIGTERM".
const char *signalName(int signal);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_RUN_INTERRUPTION_H
