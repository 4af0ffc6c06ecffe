// The options that shape a run's learning rates, held against the schedule and the program.

#ifndef PARTITA_RT_COMMON_SCHEDULE_OPTIONS_H
#define PARTITA_RT_COMMON_SCHEDULE_OPTIONS_H

#include "common/run/options.h"

#include <set>

namespace partita_rt {

/// Puts --warmup-steps, --schedule-steps and --min-lr-ratio into the schedule, which all options
/// have been read for. Throws Error: one that the schedule has a key of its own for, or does not
/// look at; rates that ignore a given --lr; betas that the optimizer has not, or that grow to 1 in
/// this run. `given` are the options of the command line.
void settleSchedule(RunOptions &options, const std::set<std::string> &given,
                    const Program &program);

/// Does the schedule cycle the optimizer's betas, at every step or at none?
bool setsBetas(const Schedule &schedule);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_SCHEDULE_OPTIONS_H
