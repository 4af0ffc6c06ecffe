// A program's tables, checked before anything runs.

#ifndef PARTITA_RT_COMMON_RUN_CHECK_PROGRAM_H
#define PARTITA_RT_COMMON_RUN_CHECK_PROGRAM_H

#include "partita_rt/program.h"

namespace partita_rt {

/// Throws Error if the tables are inconsistent (program.h).
void checkProgram(const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_RUN_CHECK_PROGRAM_H
