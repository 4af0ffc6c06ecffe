// Groups digits in threes, and leaves out signs of NaNs (grouped.h).

#include "common/grouped.h"

#include <cmath>
#include <cstdio>

namespace partita_rt {

std::string grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (int64_t i = int64_t(text.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3)
    text.insert(size_t(i), ",");
  return text;
}

std::string format(const char *pattern, double value) {
  char text[400]; // the largest number by %f
  std::snprintf(text, sizeof(text), pattern, std::isnan(value) ? std::fabs(value) : value);
  return text;
}

} // namespace partita_rt
