// Formats large numbers for people.

#ifndef PARTITA_RT_COMMON_GROUPED_H
#define PARTITA_RT_COMMON_GROUPED_H

#include <cstdint>
#include <string>

namespace partita_rt {

/// 1234567 -> "1,234,567".
std::string grouped(int64_t value);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_GROUPED_H
