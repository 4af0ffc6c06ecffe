// The time-out of a run, after which a rank that waits, or does not move, is reported: --timeout SECONDS,
// else PARTITA_RT_TIMEOUT, else kTimeoutSeconds. The program refuses what is no such number; whoever
// reads it beside the program (`partita run`, ranks that have not met yet) then takes the next one. The
// compiler includes this header.

#ifndef PARTITA_RT_TIMEOUT_H
#define PARTITA_RT_TIMEOUT_H

#include "option_words.h"

#include <cstdlib>
#include <optional>
#include <string>

namespace partita_rt {

constexpr double kTimeoutSeconds = 1800;
/// Ranks that do not meet within the time-out are reported after so many seconds at most, and at least.
constexpr double kMostToJoin = 300, kLeastToJoin = 30;
constexpr const char *kTimeoutVariable = "PARTITA_RT_TIMEOUT";

/// Reads a number of seconds above 0 and below 1e9; nothing if the text is none.
inline std::optional<double> secondsIn(const std::string &text) {
  char *end = nullptr;
  double seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(seconds > 0 && seconds < 1e9))
    return std::nullopt;
  return seconds;
}

/// Returns the variable's text; "" if it is not set.
inline std::string timeoutInEnvironment() {
  const char *text = std::getenv(kTimeoutVariable);
  return text ? text : "";
}

/// Returns what a program's arguments give; nothing if they have no --timeout, or no number.
template <typename Words> std::optional<double> timeoutIn(const Words &words) {
  std::optional<std::string> text = optionValue(words, "--timeout");
  return text ? secondsIn(*text) : std::nullopt;
}

} // namespace partita_rt

#endif // PARTITA_RT_TIMEOUT_H
