// What a process opens before its ranks start: options, data, checkpoints to go on from.

#ifndef PARTITA_RT_COMMON_RUN_SESSION_H
#define PARTITA_RT_COMMON_RUN_SESSION_H

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/folder.h"
#include "common/data/samples.h"
#include "common/mesh/launch.h"
#include "common/run_options.h"

#include <memory>

namespace partita_rt {

/// Read-only once ranks run.
struct Session {
  RunOptions options;
  FolderContents checkpoints; ///< of a run that saves: in its folder, before any was read
  std::vector<ResumePoint> resumePoints; ///< the newest first; all but the first for damage
  uint64_t seed = 1;
  bool shuffle = true;      ///< applies to the training data
  std::string dataIdentity; ///< of the training data
  std::vector<std::string> warnings;
  std::unique_ptr<Samples> dataFile, evalFile;
  std::unique_ptr<Batches> data, eval, first; ///< `first`: for --forward
};

/// Opens what the session's options name, and checks that all of it matches. Throws Error, before a rank starts.
void openSession(Session &session, const World &world, const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_RUN_SESSION_H
