// Seconds during which a process runs. The compiler's `partita run` counts by it too, so this header includes no other
// header of the runtime.

#ifndef PARTITA_RT_OWN_CLOCK_H
#define PARTITA_RT_OWN_CLOCK_H

#include <chrono>

namespace partita_rt {

/// A clock that stands still while its process does. If a job is stopped and goes on (SIGSTOP of all
/// of it, a machine that sleeps), no rank is at fault.
class OwnClock {
public:
  /// A call counts no more than this since the one before.
  static double longest(double timeout) { return timeout < 4 ? timeout / 4 : 1; }
  explicit OwnClock(double most = 1) : most(most), last(std::chrono::steady_clock::now()) {}
  void setMost(double value) { most = value; }
  /// Returns the seconds since it was made. Call it often.
  double advance() {
    auto now = std::chrono::steady_clock::now();
    double passed = std::chrono::duration<double>(now - last).count();
    seconds += passed < most ? passed : most;
    last = now;
    return seconds;
  }

private:
  double most, seconds = 0;
  std::chrono::steady_clock::time_point last;
};

} // namespace partita_rt

#endif // PARTITA_RT_OWN_CLOCK_H
