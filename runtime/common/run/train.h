// The training loop of one rank.

#ifndef PARTITA_RT_COMMON_RUN_TRAIN_H
#define PARTITA_RT_COMMON_RUN_TRAIN_H

#include "common/run/session.h"

namespace partita_rt {

/// Initializes, trains, evaluates, writes files; rank 0 prints. Returns the signal that ended the
/// training early, after a checkpoint, or 0: the same on all ranks.
int runRankProgram(Rank &rank, const Session &session);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_RUN_TRAIN_H
