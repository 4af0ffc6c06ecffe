// Were all ranks started for the same run? Ranks that are processes have command lines of their own:
// with different options or data they would train different models, or wait for each other in vain.

#ifndef PARTITA_RT_COMMON_ALIKE_SAME_OPTIONS_H
#define PARTITA_RT_COMMON_ALIKE_SAME_OPTIONS_H

#include "common/data/samples.h"
#include "common/run_options.h"

#include <string>
#include <vector>

namespace partita_rt {

/// Returns what this process was started for, for the other ones: its options, without paths, and
/// what its data are.
std::string optionsText(const RunOptions &options, const Samples *data, const Samples *evalData);
/// `texts`: all ranks' texts. Returns "" if they agree, else "ranks were started with different
/// options: rank 1 on host b has --lr 0.5, rank 0 on host a has --lr 0.1; start all with the same".
std::string differingOptions(const std::vector<std::string> &texts);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_ALIKE_SAME_OPTIONS_H
