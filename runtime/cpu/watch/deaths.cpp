// Finds ranks that died, when a signal ends this process (deaths.h).

#include "cpu/watch/deaths.h"
#include "common/run/interruption.h"
#include "common/start_marks.h"
#include "partita_rt/machine.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <unistd.h>

namespace partita_rt {

static std::atomic<DeathWatch *> watching{nullptr};

/// Has the process that was the rank ended, and not by itself? One that ends by itself says so first, so it is
/// asked again once it has ended. One that a launcher has ended is not the reason why this one does: Open MPI sends
/// SIGTERM to all and, a few milliseconds later, SIGKILL to those that have had no processor to take it.
static bool hasDied(const DeathWatch::Watched &rank) {
  const std::atomic<int> &process = rank.position->process;
  int number = process.load();
  return number != 0 && processHasEnded(number) && !hasUntakenSignal(number, SIGTERM) &&
         process.load() == number;
}

const DeathWatch::Watched &DeathWatch::own() const {
  return *std::find_if(ranks.begin(), ranks.end(),
                       [this](const Watched &each) { return each.rank == self; });
}

void DeathWatch::writeOwnFlight(const char *reason) const {
  writeFlight(*own().flight, self, own().name.c_str(), reason);
}

/// Appends "; rank 0 (...) waits in all_reduce #3 (...) for rank 1" for each live rank that waits.
void DeathWatch::appendWaiters(FixedText &text) const {
  int waiters = 0;
  for (const Watched &each : ranks) {
    if (each.position->waitsFor == RankPosition::kNoWait || hasDied(each))
      continue;
    if (++waiters > kNamedWaiters)
      continue;
    char wait[sizeof(RankPosition::Text) + 1];
    readText(each.position->wait, wait);
    text << "; " << each.name.c_str() << " waits in " << wait;
  }
  if (waiters > kNamedWaiters)
    text << "; " << waiters - kNamedWaiters << " more ranks wait";
}

/// What a signal's handler asks for: uses atomics and system calls only.
struct DeathReport {
  /// Unsaid: " after rank 1 of stage 1 (host node-2, process 4711) died; it was in step 12, at slot 3 (...);
  /// rank 0 of stage 0 (...) waits in ...".
  static OthersEnd find(bool ends) {
    static FixedText text, reason;
    text.clear();
    DeathWatch *watch = watching.load();
    if (!watch)
      return {OthersEnd::None, ""};
    if (ends) // before anything else: it may be killed meanwhile
      watch->own().position->process.store(0);
    for (const DeathWatch::Watched &each : watch->ranks)
      if (each.position->runEnds.load()) {
        if (ends)
          watch->writeOwnFlight("another rank has reported why the run ends");
        return {OthersEnd::Reported, ""};
      }
    if (std::any_of(watch->ranks.begin(), watch->ranks.end(), [](const DeathWatch::Watched &each) {
          return each.position->hasFailed.load();
        }))
      return {OthersEnd::None, ""};
    bool isReported = false;
    for (const DeathWatch::Watched &each : watch->ranks) {
      if (each.rank == watch->self || !hasDied(each))
        continue;
      reason.clear();
      appendDeath(reason, each.name.c_str(), each.position);
      if (ends)
        noteLostRank(reason.get());
      if (ends && !each.position->isReported.exchange(true))
        writeFlight(*each.flight, each.rank, each.name.c_str(), reason.get());
      else
        isReported |= ends;
      text << (text.isEmpty() ? "" : "; ") << reason.get();
    }
    if (text.isEmpty())
      return {OthersEnd::None, ""};
    watch->appendWaiters(text);
    if (ends)
      watch->writeOwnFlight(text.get());
    reason.clear();
    reason << " after " << text.get();
    return {isReported ? OthersEnd::Reported : OthersEnd::Unsaid, reason.get()};
  }
};

DeathWatch::DeathWatch(int self, std::vector<Watched> ranks) : self(self), ranks(std::move(ranks)) {
  own().position->process.store(getpid());
  watching.store(this);
  setFindOthersEnd(DeathReport::find);
}

void DeathWatch::endWithError() {
  own().position->hasFailed = true;
  end();
}

void DeathWatch::end() {
  if (watching.exchange(nullptr))
    own().position->process.store(0);
}

} // namespace partita_rt
