// Initializes a rank's parameters and optimizer states.

#ifndef PARTITA_RT_COMMON_INIT_INITIALIZE_H
#define PARTITA_RT_COMMON_INIT_INITIALIZE_H

#include "common/checkpoint/checkpoint.h"
#include "partita_rt/program.h"

namespace partita_rt {

/// Reads the first undamaged one of the checkpoints to resume from, if there are any, or calls the
/// program's init (init.cpp). Returns the checkpoint read; null after init.
const ResumePoint *initialize(Rank &rank, const std::vector<ResumePoint> &points);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_INIT_INITIALIZE_H
