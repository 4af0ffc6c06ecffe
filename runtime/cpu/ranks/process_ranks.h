// Ranks that are processes: their groups and channels, over whatever carries messages (processes.h).

#ifndef PARTITA_RT_CPU_RANKS_PROCESS_RANKS_H
#define PARTITA_RT_CPU_RANKS_PROCESS_RANKS_H

#include "cpu/links/process_links.h"
#include "partita_rt/program.h"

#include <functional>

namespace partita_rt {

struct RunOptions;

/// Runs the body for this process's rank. Does not return if a rank fails.
void runProcess(ProcessLinks &processes, const Program &program, const RunOptions *options,
                const std::function<void(Rank &)> &body);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_RANKS_PROCESS_RANKS_H
