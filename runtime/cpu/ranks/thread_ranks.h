// Ranks that are threads of one process.

#ifndef PARTITA_RT_CPU_RANKS_THREAD_RANKS_H
#define PARTITA_RT_CPU_RANKS_THREAD_RANKS_H

#include "partita_rt/program.h"

#include <functional>
#include <string>

namespace partita_rt {

struct RunOptions;

/// Runs the body once per rank; returns the message of the first failure, or "".
std::string runThreads(const Program &program, const RunOptions *options,
                       const std::function<void(Rank &)> &body);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_RANKS_THREAD_RANKS_H
