//===- Supervisor.cpp - starts a run again from its newest checkpoint -----------------------===//

#include "tools/partita/Run/Supervisor.h"
#include "runtime/include/partita_rt/checkpoint_folder.h"
#include "runtime/include/partita_rt/exit_status.h"
#include "tools/partita/Options.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/FolderAnchor.h"
#include "tools/partita/Run/KnownCheckpoints.h"
#include "tools/partita/Run/LockWait.h"
#include "tools/partita/Run/Patience.h"
#include "tools/partita/Run/ProgramWords.h"
#include "tools/partita/Run/Verdict.h"
#include <cstring>
#include <optional>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

/// The beginning of a rank's message, which it has printed in full.
static std::string briefly(StringRef message) {
  constexpr size_t kMost = 160;
  return message.size() <= kMost ? message.str() : message.take_front(kMost).str() + "...";
}

/// "SIGTERM", as ranks say it.
static std::string signalName(int number) {
  const char *name = sigabbrev_np(number);
  return name ? "SIG" + std::string(name) : "signal " + std::to_string(number);
}

/// Why a start has ended. Where a launcher hides that, a rank's report says more than the launcher's
/// status: who was lost. Where the lost one was, and who waited, the rank has printed.
static std::string reasonOf(const Outcome &outcome) {
  if (!outcome.why.empty())
    return outcome.why;
  if (!outcome.isLauncher)
    return "the program has failed";
  int signal = outcome.said == RanksSaid::NeverRan ? 0 : partita_rt::signalIn(outcome.status);
  return "the launcher has ended with status " + std::to_string(outcome.status) +
         (signal ? std::string(" (") + strsignal(signal) + ")" : "") +
         (!outcome.lostRank.empty() ? ": " + outcome.lostRank
          : !outcome.error.empty()  ? ": " + briefly(outcome.error)
          : signal                  ? ": no rank has said why; the launcher's own lines may"
                                    : "");
}

namespace {

/// A run, and what is known of it for the next start.
class Supervisor {
public:
  Supervisor(StringRef command, const std::vector<std::string> &arguments, int64_t maxRestarts,
             ProgramStarts &starts)
      : command(command), words(readWords(arguments)), arguments(arguments),
        maxRestarts(maxRestarts), starts(starts), anchor(words.folder) {
    // Without --resume, checkpoints in the folder are another run's: the program refuses them, or
    // with --overwrite its first save removes them. A restart must not go on from them.
    if (maxRestarts > 0 && !words.resumes)
      others.emplace(words.folder);
  }

  int run();

private:
  StartFacts factsOf(bool wasRestarted, bool hasSaved);
  bool mustBeginAgain() const;
  int64_t stepsDone() const;
  Progress progress() const;
  std::string whyFailed(Hidden hidden) const;
  std::string newestCheckpoint() const;
  std::string waitForFolder() const;
  std::string checkBegin();
  std::string prepareRestart();
  void tellRestart(int64_t number) const;
  void tellEnd(int64_t restarts) const;
  /// Before the next start.
  unsigned secondsToWait() const {
    return verdict == Verdict::RestartLater ? secondsBefore(pauses) : 0;
  }
  /// Has a restart shown that each would end with the same step's result?
  bool recurs() const { return verdict == Verdict::Final && failedAgain; }

  StringRef command;
  ProgramWords words;
  const std::vector<std::string> &arguments;
  int64_t maxRestarts;
  ProgramStarts &starts;
  FolderAnchor anchor;
  partita_rt::PathLock folderLock, logLock; ///< held between two starts
  std::optional<KnownCheckpoints> others;
  bool wasSaved = false; ///< the folder has had a new checkpoint since the run began
  bool hasReplacedOthers =
      false; ///< a start has saved, and removed what others had left in the folder

  Outcome outcome;                  ///< of the last start
  StartFacts facts;                 ///< what the verdict on it goes by
  Verdict verdict = Verdict::Final; ///< on it
  bool hasTrained = false;          ///< some start has
  FailedStep failedStep;            ///< the result that has ended the last start
  bool failedAgain = false;         ///< it has ended the start before too
  int stepless = 0, pauses = 0;     ///< as StartFacts counts them
  bool outlivedWait = false;        ///< a process of the start before still held the folder's lock
  std::vector<std::string> nextArguments; ///< of the next start
  /// The program or the folder is another one now: whoever starts the run again would go on with another program, or
  /// begin again. A person has to decide.
  bool mustNotGoOn = false;
  std::string resumesFrom; ///< its checkpoint; "": it begins again
};

} // namespace

/// Returns what is known of the start that has ended. `hasSaved`: the folder has a checkpoint that it had not before. If all
/// ranks were on other hosts, only that shows that the start has trained; a program that refuses to run has not made it.
StartFacts Supervisor::factsOf(bool wasRestarted, bool hasSaved) {
  StartFacts known(outcome);
  known.progress = progress();
  known.hasSaved = hasSaved;
  known.askedToEnd = outcome.interrupted || outcome.signal;
  known.failedAgain = failedAgain;
  known.wasRestarted = wasRestarted;
  known.trainedBefore = hasTrained;
  known.hasFewer = starts.hasFewer();
  known.outlivedWait = outlivedWait;
  Hidden hidden = hiddenBy(known);
  expose(known, hidden);
  if (std::string why = whyFailed(hidden); !why.empty())
    outcome.why = why;
  known.hasCause |= outcome.hasLost;
  known.hasTrained |= hasSaved && known.isUnexplained;
  stepless = outcome.hasTrained || hasSaved ? 0 : stepless + 1;
  known.stepless = stepless;
  known.pauses = pauses + 1;
  return known;
}

/// Returns the step of this run's newest checkpoint; 0 if it has none, -1 if that is not known.
int64_t Supervisor::stepsDone() const {
  bool areOwn = words.resumes || wasSaved; // else the checkpoints are those of another run
  std::vector<partita_rt::CheckpointEntry> entries = partita_rt::checkpointsIn(words.folder);
  return entries.empty() || !areOwn ? 0 : entries.front().step;
}

Progress Supervisor::progress() const {
  if (words.folder.empty() || !words.steps || stepsDone() < 0)
    return Progress::Unknown;
  return stepsDone() < *words.steps ? Progress::Incomplete : Progress::Complete;
}

/// Returns a message's text on what the launcher's status 0 hides; "" if a rank has printed it. Warns of what is not certain.
std::string Supervisor::whyFailed(Hidden hidden) const {
  std::string launcher = "the launcher has ended with status 0";
  switch (hidden) {
  case Hidden::Nothing:
  case Hidden::Refusal:
  case Hidden::Unsaved:
    return "";
  case Hidden::NoRank:
    return launcher +
           " without starting a rank on this host; does it run the command line that is appended to it?";
  case Hidden::Incomplete:
    return launcher + ", but the newest checkpoint is of step " + std::to_string(stepsDone()) +
           " of " + std::to_string(*words.steps);
  case Hidden::Failure:
    return launcher + ", but no rank on this host has finished its work" +
           (!outcome.lostRank.empty() ? ": " + outcome.lostRank
            : !outcome.error.empty()  ? ": " + briefly(outcome.error)
                                      : "");
  case Hidden::Unconfirmed:
    errs()
        << "partita " << command << ": warning: " << launcher
        << ", and no rank on this host has confirmed that the work is done; without a checkpoint of the last step, "
           "nothing else shows it\n";
    return "";
  }
  return "";
}

/// Must the next start begin again, because the newest checkpoint in the folder is another run's? This run's first save
/// removes another run's checkpoints, except those whose names are not those of their steps, from which no run resumes.
/// That it has saved, a mark says or, if its ranks are on other hosts, a newest checkpoint that was not there before.
bool Supervisor::mustBeginAgain() const {
  return others && !hasReplacedOthers && others->areIn(words.folder) &&
         others->have(partita_rt::newestEntry(words.folder));
}

/// Returns the newest checkpoint of this run that is there, though it may be damaged; "" if there is none.
std::string Supervisor::newestCheckpoint() const {
  for (const partita_rt::CheckpointEntry &entry : partita_rt::checkpointsIn(words.folder))
    if (!partita_rt::fileIn(entry.path).empty() && !(others && others->have(entry.path)))
      return entry.path;
  return "";
}

/// Returns why the next start must not use the folder, or "".
std::string Supervisor::waitForFolder() const {
  if (!anchor.isThere()) {
    errs() << "partita " << command << ": " << printableLines(reasonOf(outcome)) << "; waits up to "
           << textOf(Patience::Folder) << " for the --checkpoint folder '"
           << printableLines(anchor.name()) << "' to come back\n";
    errs().flush();
  }
  return anchor.waitFor()
             ? ""
             : "is not started again: --checkpoint: '" + anchor.name() +
                   "' is not the folder that the run started with; is a file system not mounted?";
}

/// After the waits for a restart, which may have taken ten minutes. Returns why it would not begin where its line says, or "":
/// without a checkpoint a program begins again.
std::string Supervisor::checkBegin() {
  std::string problem = waitForFolder();
  std::string newest = problem.empty() && !resumesFrom.empty() ? newestCheckpoint() : "";
  if (!newest.empty())
    resumesFrom = newest;
  if (!problem.empty() || resumesFrom.empty() || !newest.empty())
    return problem;
  return "is not started again: --checkpoint: '" + words.folder + "' has lost " + resumesFrom +
         ", and has no other checkpoint";
}

/// Decides how the next start begins. Returns why there can be none, or "".
std::string Supervisor::prepareRestart() {
  if (std::string gone = waitForFolder(); !gone.empty()) {
    mustNotGoOn = true;
    return gone;
  }
  outlivedWait = !takeLockWhenFree(folderLock, command, words.folder);
  logLock.take(words.log); // or the next start reports who has it
  bool beginsAgain = mustBeginAgain();
  resumesFrom = beginsAgain ? "" : newestCheckpoint();
  nextArguments = beginsAgain ? arguments : words.again;
  // Status 3 alone does not show training, since a rank that is lost in the set-up causes it, too. If no rank has run on
  // this host, there is nothing else to go by.
  hasTrained |= outcome.hasTrained || !resumesFrom.empty() ||
                (outcome.said == RanksSaid::NeverRan && !outcome.hasCause &&
                 outcome.status == partita_rt::kFailedWhileTraining);
  std::string problem = starts.prepare(/*fewer=*/verdict == Verdict::RestartWithFewer);
  if (problem.empty()) {
    problem = starts.checkUnchanged();
    mustNotGoOn = !problem.empty();
  }
  if (!problem.empty())
    return "cannot be started again: " + problem;
  problem = checkBegin();
  mustNotGoOn = !problem.empty();
  return problem;
}

/// Prints why a run is started again, how, when, and from which checkpoint.
void Supervisor::tellRestart(int64_t number) const {
  unsigned seconds = secondsToWait();
  std::string change = starts.change();
  errs() << "partita " << command << ": " << printableLines(reasonOf(outcome)) << "; restart "
         << number << " of " << maxRestarts << (change.empty() ? "" : " " + change)
         << (seconds ? " in " + std::to_string(seconds) + " s" : "")
         << (resumesFrom.empty() ? ", from the beginning: there is no checkpoint yet"
                                 : ", from " + printableLines(resumesFrom))
         << '\n';
  errs().flush();
}

/// Prints what the program has not said itself.
void Supervisor::tellEnd(int64_t restarts) const {
  if (verdict == Verdict::Complete) {
    errs() << "partita " << command << ": all is done; " << printableLines(reasonOf(outcome))
           << '\n';
    return;
  }
  if (recurs()) {
    fail(command, failedStep.text + " again after a restart from " +
                      (resumesFrom.empty() ? "the beginning" : resumesFrom) + ": it would recur");
    return;
  }
  if (!outcome.why.empty() && !outcome.rankPrintedError && !outcome.signal && !outcome.interrupted)
    fail(command, outcome.why);
  // After ranks that a signal has ended, and that have saved, a launcher's own crash is no failure of the run.
  if (outcome.signal && outcome.killedBy && outcome.killedBy != outcome.signal && !outcome.hasEnded)
    fail(command, outcome.why + ", and " + signalName(outcome.signal) + " ends the run");
  if (verdict == Verdict::Final && outcome.said == RanksSaid::NeverRan && outcome.why.empty())
    fail(command, "the launcher has failed with status " + Twine(outcome.status) +
                      ", and no rank was seen on this host; its own lines above say why");
  if (restarts > 0 && startsAgain(verdict))
    fail(command, "the program has failed " + Twine(restarts + 1) + " times; --max-restarts " +
                      Twine(maxRestarts) + " allows no more");
}

int Supervisor::run() {
  nextArguments = arguments;
  noteEndingSignals(); // starting may take a while too
  std::string problem = starts.prepare(/*fewer=*/false);
  if (int number = interruptingSignal())
    partita_rt::endBySignal(number);
  if (!problem.empty())
    return fail(command, problem);
  // A supervisor that was killed leaves ranks, which save and end.
  if (maxRestarts > 0 && words.resumes)
    takeLockWhenFree(folderLock, command, words.folder);
  if (int number = interruptingSignal())
    partita_rt::endBySignal(number);
  for (int64_t restarts = 0;; ++restarts) {
    KnownCheckpoints before(words.folder);
    folderLock.release();
    logLock.release();
    outcome = starts.run(nextArguments);
    if (outcome.savedIn)
      anchor.moveTo(words.folder, *outcome.savedIn);
    hasReplacedOthers |= outcome.savedIn.has_value();
    bool hasSaved = before.hasNew(words.folder);
    wasSaved |= hasSaved;
    failedAgain = outcome.failedStep.recurs(failedStep);
    failedStep = outcome.failedStep;
    facts = factsOf(restarts > 0, hasSaved);
    verdict = verdictOf(facts);
    pauses = verdict == Verdict::RestartLater ? pauses + 1 : 0;
    if (restarts == maxRestarts || !startsAgain(verdict)) {
      tellEnd(restarts);
      break;
    }
    problem = prepareRestart();
    if (problem.empty() && !interruptingSignal()) {
      tellRestart(restarts + 1);
      pauseFor(secondsToWait());
      problem = checkBegin();
      mustNotGoOn = !problem.empty();
    }
    if (verdict == Verdict::RestartWithFewer)
      stepless = 0; // of the size before
    if (int number = interruptingSignal()) {
      fail(command,
           reasonOf(outcome) + ", and " + signalName(number) + " has ended the wait for a restart");
      outcome.signal = number;
      break;
    }
    if (!problem.empty()) {
      fail(command, reasonOf(outcome) + ", and " + problem);
      return mustNotGoOn ? partita_rt::kRefused : partita_rt::kFailedWhileTraining;
    }
  }
  if (outcome.signal && verdict != Verdict::Complete)
    partita_rt::endBySignal(outcome.signal);
  return statusOf(verdict, facts, hasTrained || outcome.hasTrained);
}

int partita::tool::superviseRun(StringRef command, const std::vector<std::string> &arguments,
                                int64_t maxRestarts, ProgramStarts &starts) {
  if (maxRestarts > 0 && readWords(arguments).folder.empty())
    return fail(command, "--max-restarts needs --checkpoint DIR: a restart goes on from the newest "
                         "checkpoint in it");
  return Supervisor(command, arguments, maxRestarts, starts).run();
}
