// The line by which a process reports why it ends, while other threads still run.

#ifndef PARTITA_RT_COMMON_LAST_LINE_H
#define PARTITA_RT_COMMON_LAST_LINE_H

#include <string>

namespace partita_rt {

/// Writes what standard output holds, unless another thread is stuck in a write to it.
void flushUnlessStuck();
/// Prints "<name>: error: <error>", or "error: <error>" without a name, after
/// flushUnlessStuck().
void printLastLine(const std::string &name, const std::string &error);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_LAST_LINE_H
