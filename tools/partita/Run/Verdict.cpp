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
  // The newest checkpoint is another run's.
  if (facts.said == RanksSaid::FolderTaken)
    return Verdict::Final;
  // A disk that is full may have room again; all that was trained since the newest checkpoint is lost.
  if (facts.said == RanksSaid::Unsaved)
    return facts.refusals + 1 < kMostRefusals ? Verdict::RestartLater : Verdict::Final;
  // A rank that was killed may be started again at once. What crashes in each set-up, such as for want of
  // memory, must not do so without a pause; or it has lost ranks for good, such as those of a host that kills them.
  if (hasCrashed(facts)) {
    if (facts.crashes < 2)
      return Verdict::RestartNow;
    return facts.wasRestarted && facts.hasFewer ? Verdict::RestartWithFewer : Verdict::RestartLater;
  }
  if (facts.status == 0)
    return Verdict::Ended;
  // A launcher may hide its processes' statuses, as torchrun does.
  if (facts.hasTrained)
    return Verdict::RestartNow;
  // What has run before fails before its first step if ranks are lost for good, something is
  // missing for a while, or a rank is lost in set-up and the launcher does not say so. What is
  // missing for a while must not cost ranks, so one more start of this size comes first; and all that
  // there may be if a rank of this host has said what it lacks: a file, which fewer ranks would lack
  // too, or its GPU.
  if (facts.wasRestarted && facts.hasFewer) {
    int others = saidWhyNotRun(facts.said) ? kMostRefusals - 1 : 1;
    return facts.refusals >= others ? Verdict::RestartWithFewer : Verdict::RestartLater;
  }
  // A first start without any rank has most likely met a wrong command or host, which stay wrong.
  bool mayPass = facts.wasRestarted ? facts.isUnexplained || facts.trainedBefore
                                    : facts.isUnexplained && facts.said != RanksSaid::NeverRan;
  return mayPass && facts.refusals + 1 < kMostRefusals ? Verdict::RestartLater : Verdict::Final;
}
