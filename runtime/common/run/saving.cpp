// When a run saves (saving.h).

#include "common/run/saving.h"

#include "common/checkpoint/folder.h"
#include "common/exit_status.h"
#include "common/grouped.h"
#include "common/run/interruption.h"
#include "common/run/summary.h"
#include "common/watch/rank_position.h"
#include "partita_rt/printable.h"

#include <cstdio>
#include <sys/statvfs.h>
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

Saving::Saving(Rank &rank, const Session &session, const ResumePoint *resumed,
               ReplicaCheck &replicas)
    : rank(rank), session(session), replicas(replicas), agreement(rank) {
  const RunOptions &options = session.options;
  if (options.checkpoint.empty() || options.steps.value_or(0) <= 0)
    return;
  saver.emplace(rank, options.checkpoint, options.keep.value_or(2), continued(session, resumed));
  bool savesAgain = options.checkpointEvery > 0 || options.checkpointEverySeconds > 0;
  if (savesAgain && options.checkpointCopy.value_or(true))
    saver->prepareCopy();
}

/// Adds how much space there is, if it is less than a checkpoint needs.
std::string Saving::withSpace(const std::string &error) const {
  struct statvfs space;
  int64_t needed = saver->checkpointBytes();
  if (statvfs(session.options.checkpoint.c_str(), &space) != 0)
    return error;
  auto free = int64_t(space.f_bavail) * int64_t(space.f_frsize);
  return free >= needed
             ? error
             : error + "; " + grouped(needed) + " bytes are needed, " + grouped(free) + " are free";
}

/// Reports a save that has failed, if the one before it has not, and the first one after that. `isEnd`:
/// without an error, the save is complete.
void Saving::note(const std::string &error, bool isEnd) {
  if (rank.rank != 0 || (error.empty() && !isEnd))
    return;
  std::fflush(stdout);
  if (!error.empty() && failures++ == 0)
    std::fprintf(
        stderr,
        "%s: warning: the checkpoint of step %lld is not written: %s; training goes on, and the next "
        "one is written when it is due; of others that fail until then, nothing is said\n",
        rank.program->name, (long long)saved, printable(withSpace(error)).c_str());
  if (!error.empty())
    return;
  if (failures > 0)
    std::fprintf(stderr, "%s: the checkpoint of step %lld is written, after %lld that %s not\n",
                 rank.program->name, (long long)saved, (long long)failures,
                 failures == 1 ? "was" : "were");
  failures = 0;
}

void Saving::complete(bool last) {
  PhaseScope phase(rank, Phase::Saving);
  std::string error = saver->complete();
  if (last && error.empty())
    error = saver->finish();
  if (last && !error.empty()) {
    noteUnsaved();
    fail("%s", withSpace(error).c_str());
  }
  note(error, last);
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
      complete(/*last=*/false);
      waited += secondsSince(from);
    }
  }
  if (signal && !noted) {
    noteAsked();
    if (rank.rank == 0)
      printNoted(signal);
  }
  last |= signal != 0;
  if (!due && !timeUp && !last)
    return 0;
  replicas.beforeSave(step);
  PhaseScope phase(rank, Phase::Saving);
  begun = Clock::now();
  if (saver->isUnderWay())
    complete(/*last=*/false);
  bool isCompleting = saver->isCompleting();
  note(saver->finish(), isCompleting);
  saved = step;
  bool copies = !last && options.checkpointCopy.value_or(true);
  saver->begin({step, session.seed, session.shuffle, session.dataIdentity, skipped},
               copies ? CheckpointSaver::From::Copy : CheckpointSaver::From::Memory);
  if (!copies)
    complete(last);
  if (!last) {
    ++saves;
    waited += secondsSince(begun);
  }
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
