//===- Verdict.cpp - what a supervisor does when a start has ended --------------------------===//

#include "tools/partita/Run/Verdict.h"
#include "runtime/include/partita_rt/exit_status.h"

using namespace partita::tool;

bool partita::tool::hasCrashed(const EndFacts &facts) {
  bool isSignal = partita_rt::signalIn(facts.status) && facts.said != RanksSaid::NeverRan;
  return facts.hasCause || isSignal || facts.status == partita_rt::kFailedWhileTraining;
}

Hidden partita::tool::hiddenBy(const StartFacts &facts) {
  if (!facts.isLauncher || facts.status != 0 || facts.interrupted)
    return Hidden::Nothing;
  if (saidWhyNotRun(facts.said)) // and printed why
    return Hidden::Refusal;
  if (facts.said == RanksSaid::Unsaved)
    return Hidden::Unsaved;
  if (facts.progress == Progress::Incomplete)
    return facts.said == RanksSaid::NeverRan && !facts.hasSaved ? Hidden::NoRank
                                                                : Hidden::Incomplete;
  if (facts.hasDone)
    return Hidden::Nothing;
  if (facts.hasTrained || facts.hasLost || facts.hasError)
    return Hidden::Failure;
  return facts.progress == Progress::Unknown ? Hidden::Unconfirmed : Hidden::Nothing;
}

void partita::tool::expose(StartFacts &facts, Hidden hidden) {
  switch (hidden) {
  case Hidden::Nothing:
  case Hidden::Unconfirmed:
    return;
  case Hidden::NoRank:
    facts.isUnexplained = true;
    [[fallthrough]];
  case Hidden::Refusal:
    facts.status = partita_rt::kRefused;
    return;
  case Hidden::Incomplete:
  case Hidden::Failure:
    facts.hasCause = true;
    [[fallthrough]];
  case Hidden::Unsaved:
    facts.status = partita_rt::kFailedWhileTraining;
    return;
  }
}

/// Is the launcher's own failure the only one?
static bool isComplete(const StartFacts &facts) {
  return facts.isLauncher && facts.hasDone && !facts.interrupted &&
         facts.progress == Progress::Complete;
}

/// Is the signal in a launcher's status a request? It may also be how the launcher has ended the other ranks after one was
/// lost; they had no time to prepare their end then.
static bool isRequest(const StartFacts &facts) {
  return partita_rt::isEndingSignal(partita_rt::signalIn(facts.status)) &&
         (!facts.hasCause || facts.hasAsked);
}

Verdict partita::tool::verdictOf(const StartFacts &facts) {
  if (facts.status != 0 && isComplete(facts))
    return Verdict::Complete;
  if (facts.askedToEnd || isRequest(facts))
    return Verdict::AskedToEnd;
  // All ranks have computed that result, so no lost one, and no launcher, is the cause. Once it may
  // be a flipped bit; a run repeats its steps bit for bit.
  if (facts.failedAgain)
    return Verdict::Final;
  bool mayPause = facts.pauses < kMostStepless;
  // Another run's; or the last start's, of a host that has vanished: a file system shared by hosts keeps its lock for a while.
  if (facts.said == RanksSaid::FolderTaken)
    return facts.outlivedWait && mayPause ? Verdict::RestartLater : Verdict::Final;
  // A disk that is full may have room again; all that was trained since the newest checkpoint is lost.
  if (facts.said == RanksSaid::Unsaved)
    return mayPause ? Verdict::RestartLater : Verdict::Final;
  // A rank that was killed may be started again at once. What crashes in each set-up, such as for want of
  // memory, must not do so without a pause; or it has lost ranks for good, such as those of a host that kills them.
  if (hasCrashed(facts)) {
    if (facts.stepless < 2)
      return Verdict::RestartNow;
    return facts.wasRestarted && facts.hasFewer ? Verdict::RestartWithFewer : Verdict::RestartLater;
  }
  if (facts.status == 0)
    return Verdict::Ended;
  // A launcher may hide its processes' statuses, as torchrun does.
  if (facts.hasTrained)
    return Verdict::RestartNow;
  // A restart is refused if ranks are lost for good, or if something is missing for a while, which must not cost ranks:
  // a file, which fewer ranks would lack too, or a GPU. So this size is tried once more; if a rank has said what is missing,
  // as often as there may be starts without a step; and then a smaller one.
  if (facts.wasRestarted && facts.hasFewer) {
    int most = saidWhyNotRun(facts.said) ? kMostStepless : 2;
    return facts.stepless < most ? Verdict::RestartLater : Verdict::RestartWithFewer;
  }
  // A first start without any rank has most likely met a wrong command or host, which stay wrong.
  bool mayPass = facts.wasRestarted ? facts.isUnexplained || facts.trainedBefore
                                    : facts.isUnexplained && facts.said != RanksSaid::NeverRan;
  return mayPass && mayPause ? Verdict::RestartLater : Verdict::Final;
}

int partita::tool::statusOf(Verdict verdict, const StartFacts &facts, bool hasTrained) {
  // A launcher's own status, unless it is one by which scripts start a run again, or that of a rank which died when all was
  // done.
  bool asksForAnother = facts.killedBy || facts.hasLost || partita_rt::signalIn(facts.status) ||
                        facts.status == partita_rt::kFailedWhileTraining;
  if (verdict == Verdict::Complete)
    return asksForAnother ? 0 : facts.status;
  if (verdict == Verdict::Final && facts.failedAgain)
    return partita_rt::kRefused;
  // Whatever a launcher makes of its ranks' statuses: torchrun 1 of each, mpirun 137 of a rank's SIGKILL.
  bool mayGoOn = (startsAgain(verdict) && hasTrained) || facts.said == RanksSaid::Unsaved;
  return mayGoOn ? partita_rt::kFailedWhileTraining : facts.status;
}
