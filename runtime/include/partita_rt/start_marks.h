// What the processes of a start tell whoever may start the program again and cannot see their exit
// statuses, because a launcher hides them: each mark is a file in a folder that exists for one start.
// A launcher passes the variable on to ranks of its own host; elsewhere there is no such folder, and no
// mark is left. The compiler's `partita run` reads marks, so this header includes no other header of
// the runtime.

#ifndef PARTITA_RT_START_MARKS_H
#define PARTITA_RT_START_MARKS_H

namespace partita_rt {

/// The environment variable with the path of the folder.
constexpr const char *kMarksVariable = "PARTITA_START_MARKS";

/// A process has ended with kRefused (exit_status.h).
constexpr const char *kRefusedMark = "refused";
/// A rank has completed a step.
constexpr const char *kTrainedMark = "trained";

} // namespace partita_rt

#endif // PARTITA_RT_START_MARKS_H
