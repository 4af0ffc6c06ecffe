// Texts for a terminal: names from files are anything.

#ifndef PARTITA_RT_COMMON_PRINTABLE_H
#define PARTITA_RT_COMMON_PRINTABLE_H

#include <string>

namespace partita_rt {

/// Control characters, and bytes that are no character in UTF-8, as \\xNN; all else as it is.
std::string printable(const std::string &text);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_PRINTABLE_H
