// The status with which a process ends after an error (partita_rt/exit_status.h), and the marks that say
// the same where a launcher hides it (partita_rt/start_marks.h). Whether it has completed a step
// belongs to the process, and so does this.

#ifndef PARTITA_RT_COMMON_EXIT_STATUS_H
#define PARTITA_RT_COMMON_EXIT_STATUS_H

#include <cstdint>
#include <string>

namespace partita_rt {

/// Notes that a rank of this process has completed a training step; the first one leaves kTrainedMark.
void noteStep();
/// Notes that this process ends the run because a rank has died or makes no progress, so that a restart
/// may help; leaves kLostMark with the report, "rank 1 (host gpu-2, process 4711) died; ...". May be
/// called by a handler of signals.
void noteLoss(const char *report = "");
/// Returns the status of an error that happens now.
int failureStatus();
/// Call this for an error that this program has found by itself and reports. If no restart would help
/// (failureStatus() is kRefused), it leaves kRefusedMark.
void markRefusal();
/// Notes that a checkpoint is complete in a folder with this inode: the first one leaves kSavedMark.
void noteSaved(uint64_t inode);
/// Notes that training cannot go on after a step, because of what it has computed: leaves
/// kFailedStepMark. `what`: step and result, "the loss of step 7 is nan", the same on all ranks.
void noteFailedStep(const std::string &what);
/// Notes that another run writes into the folder for checkpoints: leaves kTakenMark.
void noteTaken();
/// Notes that the checkpoint of the last step cannot be written: leaves kUnsavedMark.
void noteUnsaved();
/// Notes that all ranks have stopped for this signal: leaves kEndedMark.
void noteEndedBy(int signal);
/// Notes that this process ends the run for a signal, after its step and a checkpoint: leaves kAskedMark.
/// May be called by a handler of signals.
void noteAsked();

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_EXIT_STATUS_H
