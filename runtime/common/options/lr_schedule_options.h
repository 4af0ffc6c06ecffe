// The options for a run's learning rates, checked against the schedule and the program.

#ifndef PARTITA_RT_COMMON_OPTIONS_LR_SCHEDULE_OPTIONS_H
#define PARTITA_RT_COMMON_OPTIONS_LR_SCHEDULE_OPTIONS_H

#include "common/run_options.h"

#include <set>

namespace partita_rt {

/// Applies --warmup-steps, --schedule-steps and --min-lr-ratio to the schedule, once all options
/// have been read. Throws Error for an option that the schedule ignores or has its own key for, for
/// a schedule that ignores a given --lr, and for betas that the optimizer lacks or that reach 1 in
/// this run. `given`: the options of the command line.
void settleSchedule(RunOptions &options, const std::set<std::string> &given,
                    const Program &program);

/// Does the schedule cycle the optimizer's betas, at every step or at none?
bool setsBetas(const LrSchedule &schedule);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_OPTIONS_LR_SCHEDULE_OPTIONS_H
