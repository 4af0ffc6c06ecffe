// Groups digits in threes (grouped.h).

#include "common/grouped.h"

namespace partita_rt {

std::string grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (int64_t i = int64_t(text.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3)
    text.insert(size_t(i), ",");
  return text;
}

} // namespace partita_rt
