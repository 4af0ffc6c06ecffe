// Initializes a rank's parameters and optimizer states.

#ifndef PARTITA_RT_COMMON_INITIALIZE_H
#define PARTITA_RT_COMMON_INITIALIZE_H

#include "partita_rt/program.h"

namespace partita_rt {

/// Reads the checkpoint to resume from, or calls the program's init (init.cpp).
void initialize(Rank &rank, int64_t startStep);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_INITIALIZE_H
