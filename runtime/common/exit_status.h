// The status with which a process ends after an error (partita_rt/exit_status.h). Whether it has
// completed a step belongs to the process, and so does this.

#ifndef PARTITA_RT_COMMON_EXIT_STATUS_H
#define PARTITA_RT_COMMON_EXIT_STATUS_H

namespace partita_rt {

/// Notes that a rank of this process has completed a training step.
void noteStep();
/// Notes that this process ends the run because a rank makes no progress, so that
/// a restart may help.
void noteLoss();
/// Returns the status of an error that happens now.
int failureStatus();
/// Call this for an error that this program has found by itself and reports. If no restart would help
/// (failureStatus() is kRefused), it makes the file that kRefusalFileVariable names: by it a
/// supervisor knows, although a launcher hides the status.
void markRefusal();

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_EXIT_STATUS_H
