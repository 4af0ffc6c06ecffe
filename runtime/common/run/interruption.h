// What SIGINT, SIGTERM and SIGHUP do to a program. They say so in one line, remove what is half
// written and end the process; but while it trains with a folder for checkpoints, the first one is
// only noted: the ranks finish the step, save, and then end by that signal. What was ignored when
// the program started (nohup) stays ignored.
//
// Launchers send a signal twice (timeout to the process and to its group, a terminal to the group
// and then partita run): a second one counts when it comes a second after the first or later.

#ifndef PARTITA_RT_COMMON_INTERRUPTION_H
#define PARTITA_RT_COMMON_INTERRUPTION_H

#include <string>

namespace partita_rt {

/// From here on signals are handled. One process of a launch, the first, says what they do.
void handleSignals(const char *program, bool isFirst);
/// Where a signal that waits leads to a checkpoint; before ranks start.
void setCheckpointFolder(const std::string &folder);

/// From begin() to end() a first signal is noted, if there is a folder for checkpoints.
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

/// The signal that was noted, 0 when none was.
int notedSignal();
/// Says once what this process does about a signal that it, or another rank's, has noted.
void sayNoted(int signal);
/// The ranks have ended with a step for this signal: a launcher that ends the last of them when the
/// first has gone has nothing more to tell.
void setEndedBy(int signal);
/// "SIGTERM".
const char *signalName(int signal);
/// Ends the process as if it had never been handled.
void endBySignal(int signal);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_INTERRUPTION_H
