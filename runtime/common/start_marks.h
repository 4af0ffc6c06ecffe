// Leaves the marks that say what a process has done, or ends for, where a launcher hides its exit status
// (partita_rt/start_marks.h); chooses this status (partita_rt/exit_status.h). Whether it has completed a
// step belongs to the process, and so does this.

#ifndef PARTITA_RT_COMMON_START_MARKS_H
#define PARTITA_RT_COMMON_START_MARKS_H

#include <cstdint>
#include <string>

namespace partita_rt {

/// Reads from the environment where marks are left, as the first of the others does. For handlers of signals, which
/// cannot: call it before there are any.
void findMarksFolder();
/// Notes that a rank of this process has completed a training step; the first one leaves kTrainedMark.
void noteStep();
/// Notes that this process ends the run because a rank has died or makes no progress, so that a restart
/// may help; leaves kLostMark with the report, "rank 1 (host gpu-2, process 4711) died; ...", of which the
/// part before the first semicolon names the rank. May be called by a handler of signals.
void noteLostRank(const char *report = "");
/// Notes that this process ends the run because memory or arithmetic is faulty, so that a restart may help.
/// Leaves no mark.
void noteFault();
/// Returns the status of an error that happens now: kFailedWhileTraining after any of these three.
int failureStatus();
/// Call this for an error that this program has found by itself and reports. It leaves kRefusedMark if no
/// restart would help (failureStatus() is kRefused), else kErrorMark, each with the message.
void markError(const std::string &error);
/// Notes that a checkpoint is complete in a folder with this inode: the first one leaves kSavedMark.
void noteSaved(uint64_t inode);
/// Notes that training cannot go on after a step, because of what it has computed: leaves
/// kFailedStepMark. `kind`: a word for the result, "loss-nan"; `text`: both, "the loss of step 7 is nan".
/// The same on all ranks.
void noteFailedStep(int64_t step, const char *kind, const std::string &text);
/// Notes that all ranks are threads of this process: leaves kAloneMark.
void noteAlone();
/// Notes that this process has done everything that it was asked for: leaves kDoneMark.
void noteDone();
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

#endif // PARTITA_RT_COMMON_START_MARKS_H
