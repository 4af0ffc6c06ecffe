// Decides after each step whether the run saves, or ends by a signal, so that all ranks decide alike.

#ifndef PARTITA_RT_COMMON_RUN_SAVING_H
#define PARTITA_RT_COMMON_RUN_SAVING_H

#include "common/checkpoint/saver.h"
#include "common/replicas/replicas.h"
#include "common/run/agreement.h"
#include "common/run/train.h"
#include "common/seconds.h"

#include <optional>

namespace partita_rt {

class Saving {
public:
  /// `resumed`: the checkpoint that the run continues; null: none. Nothing is saved whose replicas
  /// differ.
  Saving(Rank &rank, const Session &session, const ResumePoint *resumed, ReplicaCheck &replicas);
  /// Ends a step: begins a save if one is due, and completes one that all ranks have written. All ranks call it;
  /// `skipped`: the number of steps that they have skipped so far. Returns the signal by which the run ends, after a checkpoint; 0: it goes on.
  /// If a save fails, training goes on, with a warning for the first of several. The run's last one is tried again
  /// for kLastPatience seconds if its error may pass (StorageError), unless a signal ends the run; then this throws
  /// Error on rank 0. Unless a save is due, ranks do not wait for each other here (agreement.h).
  int afterStep(int64_t step, int64_t skipped);
  /// Prints the closing lines about the last checkpoint, on rank 0.
  void summarize(int64_t step, int endedBy) const;

  /// Seconds: how long all that was trained since the checkpoint before is worth waiting for room, while ranks hold their
  /// processors. By the clock of the wall, which goes on while the process is stopped; an attempt that has begun is ended.
  static constexpr double kLastPatience = 300;

private:
  void complete();
  void saveLast(const CheckpointInfo &info);
  void note(const std::string &error, bool isEnd);
  std::string withSpace(const std::string &error) const;

  Rank &rank;
  const Session &session;
  ReplicaCheck &replicas;
  StepAgreement agreement;
  std::optional<CheckpointSaver> saver;   ///< with a folder for checkpoints
  Clock::time_point begun = Clock::now(); ///< the last save, or the run
  int64_t saved = 0;                      ///< the step of the last save
  int64_t saves = 0;                      ///< but the last one
  int64_t failures = 0;                   ///< of saves in succession
  double waited = 0; ///< seconds for which training has waited for these between steps
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_RUN_SAVING_H
