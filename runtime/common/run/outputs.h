// What a run will write: checked before it starts rather than found at its end.

#ifndef PARTITA_RT_COMMON_RUN_OUTPUTS_H
#define PARTITA_RT_COMMON_RUN_OUTPUTS_H

#include "common/run_options.h"

namespace partita_rt {

/// Throws Error if an output cannot be written, would overwrite an input of the run, a file of the program or another
/// output, or would be removed with a checkpoint. `isFirst`: this process also checks what one process writes for all.
void checkOutputs(const Program &program, const RunOptions &options, bool isFirst);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_RUN_OUTPUTS_H
