// The training loop of one rank.

#ifndef PARTITA_RT_COMMON_RUN_TRAIN_H
#define PARTITA_RT_COMMON_RUN_TRAIN_H

#include "common/checkpoint/checkpoint.h"
#include "common/data/samples.h"
#include "common/run_options.h"

#include <memory>

namespace partita_rt {

/// The files that a process opens before its ranks start; read-only afterwards.
struct Session {
  RunOptions options;
  std::vector<ResumePoint> resumePoints; ///< the newest first; all but the first for damage
  uint64_t seed = 1;
  bool shuffle = true;      ///< applies to the training data
  std::string dataIdentity; ///< of the training data
  std::vector<std::string> warnings;
  std::unique_ptr<Samples> dataFile, evalFile;
  std::unique_ptr<Batches> data, eval, first; ///< `first`: for --forward
};

/// Initializes, trains, evaluates, writes files; rank 0 prints. Returns the signal that ended the
/// training early, after a checkpoint, or 0: the same on all ranks.
int runRankProgram(Rank &rank, const Session &session);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_RUN_TRAIN_H
