// When a run saves (saving.h).

#include "common/run/saving.h"

#include "common/checkpoint/folder.h"
#include "common/grouped.h"
#include "common/run/interruption.h"
#include "common/run/summary.h"
#include "partita_rt/printable.h"

#include <cstdio>
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
      steps.insert(point.place == session.options.checkpoint ? -1 : point.info.step);
  }
  return steps;
}

Saving::Saving(Rank &rank, const Session &session, const ResumePoint *resumed)
    : rank(rank), session(session) {
  const RunOptions &options = session.options;
  if (!options.checkpoint.empty() && options.steps.value_or(0) > 0)
    saver.emplace(rank, options.checkpoint, options.keep.value_or(2), continued(session, resumed));
}

/// Exchanges what only some ranks know: a signal, whether files are written, and rank 0's clock.
Saving::StepEnd Saving::agree() const {
  double seconds = session.options.checkpointEverySeconds;
  bool timeUp =
      seconds > 0 && std::chrono::duration<double>(Clock::now() - begun).count() >= seconds;
  constexpr size_t kWords = 3;
  const int64_t mine[kWords] = {notedSignal(), saver->isWritten(), timeUp};
  std::vector<int64_t> all(kWords * size_t(rank.ranks));
  allGather(*rank.world, {{mine, all.data(), kWords}}, "the end of a step");
  StepEnd end{0, true, all[2] != 0};
  for (size_t at = 0; at < all.size(); at += kWords) {
    end.signal = std::max(end.signal, int(all[at]));
    end.written &= all[at + 1] != 0;
  }
  if (rank.rank == 0 && end.signal && !mine[0])
    printNoted(end.signal);
  return end;
}

void Saving::warn(const std::string &error) const {
  if (error.empty())
    return;
  std::fflush(stdout);
  std::fprintf(stderr,
               "%s: warning: the checkpoint of step %lld is not written: %s; training goes on, and "
               "the next one is written when it is due\n",
               rank.program->name, (long long)saved, printable(error).c_str());
}

void Saving::complete(bool last) {
  std::string error = saver->complete();
  if (last && error.empty())
    error = saver->finish();
  if (last && !error.empty())
    fail("%s", error.c_str());
  warn(error);
}

int Saving::afterStep(int64_t step) {
  if (!saver)
    return 0; // signals are not deferred
  const RunOptions &options = session.options;
  StepEnd end = agree();
  if (saver->isUnderWay() && end.written)
    complete(/*last=*/false);
  bool last = step == *options.steps || end.signal;
  bool due =
      last || end.timeUp || (options.checkpointEvery > 0 && step % options.checkpointEvery == 0);
  if (!due)
    return 0;
  if (saver->isUnderWay())
    complete(/*last=*/false);
  warn(saver->finish());
  saved = step;
  begun = Clock::now();
  bool copies = !last && options.checkpointCopy.value_or(true);
  saver->begin({step, session.seed, session.shuffle, session.dataIdentity},
               copies ? CheckpointSaver::From::Copy : CheckpointSaver::From::Memory);
  if (!copies)
    complete(last);
  return end.signal;
}

void Saving::summarize(int64_t step, int endedBy) const {
  if (!saver)
    return;
  std::string text = stepFolder(session.options.checkpoint, step);
  if (endedBy)
    text += ", step " + std::to_string(step) + " of " + std::to_string(*session.options.steps) +
            ", ended by " + signalName(endedBy) + "; --resume goes on from there";
  writeLine("checkpoint", text);
  if (int64_t bytes = saver->copyBytes())
    writeLine("", grouped(bytes) + " bytes of host memory for the copy that rank 0 writes while it "
                                   "trains");
  if (!saver->noCopy().empty())
    writeLine("", saver->noCopy() + ": training waited until it was written");
}

} // namespace partita_rt
