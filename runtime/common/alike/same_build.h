// Are all ranks' programs the same build? Ranks of different ones would compute different bits, or
// take each other's messages for something else.

#ifndef PARTITA_RT_COMMON_ALIKE_SAME_BUILD_H
#define PARTITA_RT_COMMON_ALIKE_SAME_BUILD_H

#include "partita_rt/program.h"

#include <string>
#include <vector>

namespace partita_rt {

/// Returns what this process executes, for the other ones.
std::string buildText(const Program &program);
/// `texts`: all ranks' build texts. Returns "" if they are equal, else "ranks run programs of
/// different builds: the mesh of rank 0 on a is dp=4, that of rank 2 on b is dp=2,tp=2; ...".
std::string differingBuilds(const std::vector<std::string> &texts);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_ALIKE_SAME_BUILD_H
