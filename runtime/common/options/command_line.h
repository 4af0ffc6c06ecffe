// The command line of an emitted program.

#ifndef PARTITA_RT_COMMON_OPTIONS_COMMAND_LINE_H
#define PARTITA_RT_COMMON_OPTIONS_COMMAND_LINE_H

#include "common/run_options.h"

namespace partita_rt {

/// Parses the command line. Throws Error on an unknown option (with the nearest known one), a
/// missing or malformed argument, combinations that make no sense, and what this program cannot do.
RunOptions parseOptions(int argc, char **argv, const Program &program);

std::string helpText(const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_OPTIONS_COMMAND_LINE_H
