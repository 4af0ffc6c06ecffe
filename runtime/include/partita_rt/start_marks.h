// What the processes of a start tell whoever may start the program again, beyond their exit statuses,
// which a launcher may hide: each mark is a file in a folder that exists for one start.
// A launcher passes the variable on to ranks of its own host; elsewhere there is no such folder, and no
// mark is left. The compiler's `partita run` reads marks, so this header includes no other header of
// the runtime.

#ifndef PARTITA_RT_START_MARKS_H
#define PARTITA_RT_START_MARKS_H

namespace partita_rt {

/// The environment variable with the path of the folder.
constexpr const char *kMarksVariable = "PARTITA_START_MARKS";

/// A rank has completed a step.
constexpr const char *kTrainedMark = "trained";
/// All ranks are threads of one process, which no other one watches.
constexpr const char *kAloneMark = "alone";
/// A checkpoint is complete. The file has the inode of the folder for checkpoints (inodeOf): a restart
/// that finds another folder there, or none, must not begin anew.
constexpr const char *kSavedMark = "saved";
/// A process has done everything that it was asked for: what its launcher still does is the launcher's own work.
constexpr const char *kDoneMark = "done";
/// A process has ended with kRefused (exit_status.h). The file has its message, for people.
constexpr const char *kRefusedMark = "refused";
/// A step has a result with which training cannot go on, such as a loss that is NaN. The first line has the
/// step's number and a word for the result, "7 loss-nan"; the second says so for people. A run repeats its
/// steps bit for bit, so a start with the same step and word as the one before shows that the next one
/// would have them too.
constexpr const char *kFailedStepMark = "failed-step";
/// A process ends because another one has died or makes no progress, in the set-up too. For people: the
/// first line names that one, "rank 1 (host gpu-2, process 4711) died"; the second is the whole report.
constexpr const char *kLostMark = "lost";
/// A process has ended with an error of its own, after which a restart may help. For people: its message.
constexpr const char *kErrorMark = "error";
/// Another run writes into the folder for checkpoints: what is in it is no longer this run's.
constexpr const char *kTakenMark = "taken";
/// The checkpoint of the last step cannot be written: all is trained, and nothing of it kept.
constexpr const char *kUnsavedMark = "unsaved";
/// All ranks have completed a step, and end for the signal whose number the file has. They have saved, unless there was no
/// room for it and the signal has ended the wait.
constexpr const char *kEndedMark = "ended-by-signal";
/// A process knows that a signal ends the run: it completes its step, saves, and needs no other signal.
/// Its ID follows: a launcher may have started others since then.
constexpr const char *kAskedMark = "asked-";
/// The first step of a start removes these if they are older: then the launcher has started ranks again.
constexpr const char *kMarksOfOneStart[] = {kDoneMark,  kRefusedMark, kFailedStepMark, kLostMark,
                                            kErrorMark, kTakenMark,   kUnsavedMark,    kEndedMark};

} // namespace partita_rt

#endif // PARTITA_RT_START_MARKS_H
