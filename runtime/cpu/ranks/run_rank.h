// What all ranks do, whatever carries their messages: memory, the body, the end.

#ifndef PARTITA_RT_CPU_RANKS_RUN_RANK_H
#define PARTITA_RT_CPU_RANKS_RUN_RANK_H

#include "common/run_options.h"
#include "partita_rt/program.h"

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace partita_rt {

/// Prepares matmuls for the ranks of this process; `options` may be null.
void prepareMatmuls(int ranks, const RunOptions *options);

/// Gives the rank its memory, runs the body, and checks that nothing is left pending. The caller
/// keeps the memory until no other rank can be accessing it.
void runRank(Rank &rank, std::shared_ptr<void> &memory, const std::function<void(Rank &)> &body);

/// Returns why a rank failed.
std::string failureText(const std::exception &error);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_RANKS_RUN_RANK_H
