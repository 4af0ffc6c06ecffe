// When a run saves (saving.h).

#include "common/run/saving.h"

#include "common/checkpoint/folder.h"
#include "common/grouped.h"
#include "common/mesh/gathered.h"
#include "common/report/summary.h"
#include "common/run/interruption.h"
#include "common/start_marks.h"
#include "common/watch/rank_position.h"
#include "partita_rt/checkpoint_folder.h"
#include "partita_rt/printable.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <sys/statvfs.h>
#include <unistd.h>
#include <vector>

namespace partita_rt {

/// Returns the steps of the checkpoints that a run continues: that from which it resumes, and those
/// before it.
static std::set<int64_t> continued(const Session &session, const ResumePoint *resumed) {
  std::set<int64_t> steps;
  bool found = false;
  for (const ResumePoint &point : session.resumePoints) {
    found |= &point == resumed;
    if (found)
      steps.insert(point.folder == session.options.checkpoint ? -1 : point.info.step);
  }
  return steps;
}

/// Fails if another run has saved since this one read the folder: the first save would remove its checkpoint. Nobody else
/// saves from now on, because this run has the folder's lock.
static void checkNoneAdded(const Session &session) {
  const RunOptions &options = session.options;
  if (contentsOf(options.checkpoint) == session.checkpoints)
    return;
  bool resumes = options.resume || options.resumeIfThere;
  if (resumes) // started again, it goes on from what is there now
    noteFault();
  fail(
      "--checkpoint: another run has saved into %s, or removed from it, while this one was starting; %s",
      options.checkpoint.c_str(),
      resumes ? "start it again to go on from there" : "give each run a folder of its own");
}

Saving::Saving(Rank &rank, const Session &session, const ResumePoint *resumed,
               ReplicaCheck &replicas)
    : rank(rank), session(session), replicas(replicas), agreement(rank) {
  const RunOptions &options = session.options;
  if (options.checkpoint.empty() || options.steps.value_or(0) <= 0)
    return;
  saver.emplace(rank, options.checkpoint, options.keep.value_or(2), continued(session, resumed));
  if (rank.rank == 0)
    checkNoneAdded(session);
  bool savesAgain = options.checkpointEvery > 0 || options.checkpointEverySeconds > 0;
  saver->checkShared();
  if (savesAgain && options.checkpointCopy.value_or(true))
    saver->prepareCopy();
}

/// What the file system of a folder has left.
struct Space {
  int64_t bytes = 0;
  bool hasInodes = true;
};
static std::optional<Space> spaceAt(const std::string &folder) {
  struct statvfs status;
  if (statvfs(folder.c_str(), &status) != 0)
    return std::nullopt;
  bool countsInodes = status.f_files > 0;
  return Space{int64_t(status.f_bavail) * int64_t(status.f_frsize),
               !countsInodes || status.f_favail > 0};
}

/// Adds how much space there is, if it is less than a checkpoint needs, and what to do.
std::string Saving::withSpace(const std::string &error) const {
  int64_t needed = saver->checkpointBytes();
  std::optional<Space> space = spaceAt(session.options.checkpoint);
  if (space && !space->hasInodes)
    return error + "; the file system has no inodes left: remove files from it";
  if (!space || space->bytes >= needed)
    return error;
  bool keepsSeveral =
      session.options.keep.value_or(2) > 1 && checkpointsIn(session.options.checkpoint).size() > 1;
  return error + "; " + grouped(needed) + " bytes are needed, " + grouped(space->bytes) +
         " are free: make room for " + grouped(needed - space->bytes) + " more" +
         (keepsSeveral ? ", or give --keep 1" : "");
}

/// Reports the first of the saves that fail in succession, few of the others, and the first one after that.
/// `isEnd`: without an error, the save is complete.
void Saving::note(const std::string &error, bool isEnd) {
  if (rank.rank != 0 || (error.empty() && !isEnd))
    return;
  std::fflush(stdout);
  if (!error.empty()) {
    ++failures;
    bool isPower = (failures & (failures - 1)) == 0;
    if (failures == 1 || (failures >= 8 && isPower)) // with the first, the 8th, the 16th, ...
      std::fprintf(
          stderr,
          "%s: warning: the checkpoint of step %lld is not written: %s; training goes on, and "
          "the next one is written when it is due%s\n",
          rank.program->name, (long long)saved, printable(withSpace(error)).c_str(),
          failures == 1
              ? " (of further failures in a row, only the 8th, 16th, 32nd and so on are reported)"
              : ("; " + std::to_string(failures) + " in succession have failed").c_str());
    return;
  }
  if (failures > 0)
    std::fprintf(stderr, "%s: the checkpoint of step %lld is written, after %lld that %s not\n",
                 rank.program->name, (long long)saved, (long long)failures,
                 failures == 1 ? "was" : "were");
  failures = 0;
}

void Saving::complete() {
  PhaseScope phase(rank, Phase::Saving);
  note(saver->complete().why, /*isEnd=*/false);
}

/// Everything that was trained since the checkpoint before is lost without the last one, so somebody gets time to empty
/// a full disk.
void Saving::saveLast(const CheckpointInfo &info) {
  struct Attempt {
    int64_t fails = 0, isOver = 0; ///< on rank 0
    int64_t signal = 0;            ///< of any
  };
  Clock::time_point since = Clock::now();
  for (unsigned pause = 1;; pause = std::min(2 * pause, 16U)) {
    saver->begin(info, CheckpointSaver::From::Memory, replicas.comparedHashes());
    SaveFailure failure = saver->complete();
    if (!failure)
      failure = saver->finish();
    bool isOver = secondsSince(since) > kLastPatience || !failure.mayPass;
    std::vector<Attempt> all =
        gathered(rank, Attempt{bool(failure), isOver, notedSignal()}, "the last checkpoint");
    bool ends = std::any_of(all.begin(), all.end(), [](const Attempt &a) { return a.signal != 0; });
    if (!all[0].fails)
      return note(failure.why, /*isEnd=*/true);
    if (all[0].isOver || ends) {
      if (ends)
        noteEndedBy(int(std::max_element(all.begin(), all.end(), [](auto &a, auto &b) {
                          return a.signal < b.signal;
                        })->signal));
      else
        noteUnsaved();
      if (rank.rank == 0)
        fail("%s", withSpace(failure.why).c_str());
      return; // rank 0 ends all
    }
    if (rank.rank == 0 && pause == 1)
      std::fprintf(stderr,
                   "%s: warning: the last checkpoint is not written: %s; it is tried again for %d "
                   "minutes, or until a signal\n",
                   rank.program->name, printable(withSpace(failure.why)).c_str(),
                   int(kLastPatience / 60));
    sleep(pause);
  }
}

int Saving::afterStep(int64_t step, int64_t skipped) {
  if (!saver)
    return 0; // signals are not deferred
  const RunOptions &options = session.options;
  bool last = step == *options.steps, timeUp = false;
  bool due = last || (options.checkpointEvery > 0 && step % options.checkpointEvery == 0);
  double every = options.checkpointEverySeconds;
  bool ownTimeUp = every > 0 && secondsSince(begun) >= every;
  int signal = 0, noted = notedSignal();
  for (const StepEnd &end :
       agreement.afterStep({step, noted, saver->isWritten(), ownTimeUp}, /*waits=*/due)) {
    bool isNews = end.step > saved; // what was said before the last save is about the one before it
    timeUp |= isNews && end.timeUp;
    signal = std::max(signal, end.signal);
    if (saver->isUnderWay() && isNews && end.written) {
      Clock::time_point from = Clock::now();
      complete();
      waited += secondsSince(from);
    }
  }
  if (signal && !noted) {
    noteAsked();
    if (rank.rank == 0)
      announceEnding(signal);
  }
  last |= signal != 0;
  if (!due && !timeUp && !last)
    return 0;
  replicas.beforeSave(step);
  PhaseScope phase(rank, Phase::Saving);
  begun = Clock::now();
  if (saver->isUnderWay())
    complete();
  bool isCompleting = saver->isCompleting();
  note(saver->finish().why, isCompleting);
  saved = step;
  CheckpointInfo info{step, session.seed, session.shuffle, session.dataIdentity, skipped};
  if (last) {
    saveLast(info);
    return signal;
  }
  bool copies = options.checkpointCopy.value_or(true);
  saver->begin(info, copies ? CheckpointSaver::From::Copy : CheckpointSaver::From::Memory,
               replicas.comparedHashes());
  if (!copies)
    complete();
  ++saves;
  waited += secondsSince(begun);
  return signal;
}

void Saving::summarize(int64_t step, int endedBy) const {
  if (!saver)
    return;
  std::string text = stepFolder(session.options.checkpoint, step);
  if (endedBy)
    text += ", step " + std::to_string(step) + " of " + std::to_string(*session.options.steps) +
            ", ended by " + signalName(endedBy) + "; --resume goes on from there";
  writeLine("checkpoint", text);
  if (saves > 0)
    writeLine("", "training waited " + format("%.3f", waited + saver->waitedInSteps()) + " s for " +
                      grouped(saves) + (saves == 1 ? " save before it" : " saves before it"));
  if (int64_t bytes = saver->copyBytes())
    writeLine("", grouped(bytes) + " bytes of host memory for the copy that rank 0 writes while it "
                                   "trains");
  if (!saver->noCopy().empty())
    writeLine("", saver->noCopy() + ": training waited until it was written");
}

} // namespace partita_rt
