//===- Verdict.cpp - what a supervisor does when a start has ended --------------------------===//

#include "tools/partita/Run/Verdict.h"
#include "runtime/include/partita_rt/exit_status.h"

using namespace partita::tool;

bool partita::tool::hasCrashed(const EndFacts &facts) {
  return facts.hasCause || partita_rt::signalIn(facts.status) ||
         facts.status == partita_rt::kFailedWhileTraining;
}

Verdict partita::tool::verdictOf(const StartFacts &facts) {
  int signal = partita_rt::signalIn(facts.status);
  if (facts.askedToEnd || partita_rt::isEndingSignal(signal))
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
