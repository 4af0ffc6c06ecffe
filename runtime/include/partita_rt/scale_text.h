// Formats a loss scale for messages, logs and the report, as the exact number. Scales are usually
// powers of two, of which "%.9g" misprints those from 2^30 on.

#ifndef PARTITA_RT_SCALE_TEXT_H
#define PARTITA_RT_SCALE_TEXT_H

#include <cmath>
#include <cstdio>
#include <string>

namespace partita_rt {

inline std::string scaleText(double scale) {
  int exponent = 0;
  bool power = std::frexp(scale, &exponent) == 0.5;
  const char *pattern = !power ? "%.9g" : exponent > 0 ? "%.0f" : "%.17g";
  char text[64]; // 2^127 has 39 digits
  std::snprintf(text, sizeof(text), pattern, scale);
  return text;
}

} // namespace partita_rt

#endif // PARTITA_RT_SCALE_TEXT_H
