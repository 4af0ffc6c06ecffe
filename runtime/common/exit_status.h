// The status with which a process ends after an error (partita_rt/exit_status.h). Whether it has
// completed a step belongs to the process, and so does this.

#ifndef PARTITA_RT_COMMON_EXIT_STATUS_H
#define PARTITA_RT_COMMON_EXIT_STATUS_H

namespace partita_rt {

/// Notes that a rank of this process has completed a training step.
void noteStep();
/// Notes that this process ends the run because a rank does not get on, which starting it again may help against.
void noteLoss();
/// Returns the status of an error that happens now.
int failureStatus();
/// The same of an error that this program has found by itself, and says: if it is kRefused, makes the
/// file that kRefusalFileVariable names.
int ownFailureStatus();

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_EXIT_STATUS_H
