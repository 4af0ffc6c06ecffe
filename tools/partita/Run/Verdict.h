//===- Verdict.h - what a supervisor does when a start has ended ------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_VERDICT_H
#define PARTITA_TOOLS_RUN_VERDICT_H

namespace partita::tool {

/// How many starts may fail before their first step, in succession, if the run has trained before
/// or it is not known why.
inline constexpr int kMostStepless = 6;
/// Returns how many seconds to wait before the restart that is the n-th in succession with a pause: 1, 2, 4, 8, 16, and no
/// longer. The cause, such as an unmounted file system, may be temporary.
inline unsigned secondsBefore(int pause) {
  return pause ? 1U << ((pause < kMostStepless ? pause : kMostStepless - 1) - 1) : 0;
}

/// What the ranks of this host have reported by the end of a start; if they have reported several of these, the one listed
/// last counts.
enum class RanksSaid {
  Nothing, ///< of these
  NeverRan, ///< there were none: a launcher has ended without starting one here, and its status is its own
  Refused,     ///< why one of them has refused to run
  Unsaved,     ///< that the last step is done, and its checkpoint cannot be written
  FolderTaken, ///< why they have refused to run: another run writes into the folder for checkpoints
};
inline bool saidWhyNotRun(RanksSaid said) {
  return said == RanksSaid::Refused || said == RanksSaid::FolderTaken;
}

/// What the processes of a start show when they have ended.
struct EndFacts {
  int status = 0;   ///< the largest of a process, or the launcher's
  int killedBy = 0; ///< a signal by which a process of the program, or the launcher, was ended
  /// A process was killed or has stopped, or a launcher has ended too early or outlived its ranks.
  bool hasCause = false;
  bool interrupted = false; ///< a signal to this process, which was passed on, asked for the end
  bool isLauncher = false; ///< the process was no rank, and its status may say nothing of the ranks
  RanksSaid said = RanksSaid::Nothing;
  bool hasDone = false;  ///< a rank of this host has done all that it was asked for
  bool hasLost = false;  ///< one has reported another as lost, and none has refused to run
  bool hasError = false; ///< one has ended with an error of its own
  bool hasAsked = false; ///< one was about to end because of a signal
  bool hasEnded = false; ///< one has ended because of it, after a checkpoint
  /// A launcher has failed, its status names no signal (126 and 127: no command), and no rank of this
  /// host has refused to run.
  bool isUnexplained = false;
  bool hasTrained = false; ///< a rank has completed a step, as a mark or a new checkpoint shows
};

/// What checkpoints say of the last of --steps.
enum class Progress {
  Unknown, ///< no checkpoint is wanted, or none can be read
  Incomplete,
  Complete ///< there is one of that step
};

/// Has something ended it that need not recur, such as a killed rank? Ranks that have lost another one exit with
/// kFailedWhileTraining, too.
bool hasCrashed(const EndFacts &facts);

/// What is known of a start that has ended, and of those before it.
struct StartFacts : EndFacts {
  StartFacts() = default;
  explicit StartFacts(const EndFacts &ended) : EndFacts(ended) {}
  bool askedToEnd = false; ///< a signal has asked this process, or a rank, to end
  bool hasSaved = false;   ///< there is a checkpoint that was not there before the start
  Progress progress = Progress::Unknown;
  bool failedAgain = false;   ///< a step's result has ended it, as it has the start before
  bool wasRestarted = false;  ///< the start was a restart
  bool trainedBefore = false; ///< some start before has completed a step
  bool hasFewer = false;      ///< the next start could have fewer ranks
  bool outlivedWait = false;  ///< a process of the start before still held the folder's lock
  // In succession, with this one, and since the number of ranks has changed last:
  int stepless = 0; ///< starts that ended before their first step, by a crash or a refusal
  int pauses = 0;   ///< those that were, or would be, followed by a pause (RestartLater)
};

/// What status 0 of a launcher hides, such as of a script whose last command is another one.
enum class Hidden {
  Nothing,
  Refusal,     ///< a rank has refused to run
  Unsaved,     ///< the last checkpoint could not be written
  NoRank,      ///< none has run
  Incomplete,  ///< the newest checkpoint is of an earlier step than the last one
  Failure,     ///< ranks have trained or failed, and none has done all that it was asked for
  Unconfirmed, ///< perhaps nothing: ranks have left no mark, such as on other hosts, and there is no checkpoint to go by
};
Hidden hiddenBy(const StartFacts &facts);
/// Makes the facts those of a start that shows what its launcher hides.
void expose(StartFacts &facts, Hidden hidden);

enum class Verdict {
  Ended, ///< everything is done
  Complete, ///< the same, though the launcher has failed: what a script does after its ranks is its own work
  AskedToEnd,       ///< by a signal
  RestartNow,       ///< what has happened need not recur
  RestartLater,     ///< what has happened may pass, such as a file system that is read-only for now
  RestartWithFewer, ///< what has happened has not passed: ranks may be lost for good
  Final,            ///< what has happened would recur
};

inline bool startsAgain(Verdict verdict) {
  return verdict == Verdict::RestartNow || verdict == Verdict::RestartLater ||
         verdict == Verdict::RestartWithFewer;
}

/// Decides; whether --max-restarts allows a restart is another question.
Verdict verdictOf(const StartFacts &facts);

/// Returns the exit status of the supervisor when no other start follows. `hasTrained`: some start has completed a step.
int statusOf(Verdict verdict, const StartFacts &facts, bool hasTrained);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_VERDICT_H
