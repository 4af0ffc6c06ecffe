// Seconds since a moment, on the clock that never jumps.

#ifndef PARTITA_RT_COMMON_SECONDS_H
#define PARTITA_RT_COMMON_SECONDS_H

#include <chrono>

namespace partita_rt {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_SECONDS_H
