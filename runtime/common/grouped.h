// Formats numbers for people.

#ifndef PARTITA_RT_COMMON_GROUPED_H
#define PARTITA_RT_COMMON_GROUPED_H

#include <cstdint>
#include <string>

namespace partita_rt {

/// 1234567 -> "1,234,567".
std::string grouped(int64_t value);

/// Formats a number by a pattern of printf, such as "%.4f", without the sign of a NaN, which says
/// nothing.
std::string format(const char *pattern, double value);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_GROUPED_H
