// Finds ranks that died, when a signal ends this process (deaths.h).

#include "cpu/watch/deaths.h"
#include "common/run/interruption.h"
#include "common/start_marks.h"
#include "partita_rt/machine.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <unistd.h>

namespace partita_rt {

static std::atomic<DeathWatch *> watching{nullptr};

/// Has the process that was the rank ended, and not by itself? One that ends by itself says so first, so it is
/// asked again once it has ended. It may not be waited for yet, nor even be a zombie: a launcher learns of its end by
/// its closed connections. So /proc is read.
static bool hasDied(const DeathWatch::Watched &rank) {
  const std::atomic<int> &process = rank.position->process;
  int number = process.load();
  return number != 0 && processHasEnded(number) && process.load() == number;
}

const DeathWatch::Watched &DeathWatch::own() const {
  return *std::find_if(ranks.begin(), ranks.end(),
                       [this](const Watched &each) { return each.rank == self; });
}

/// Returns why the node's ranks end. If none of them has said so yet, what this one sees now is the cause for all.
uint64_t DeathWatch::decide() const {
  uint64_t known = endCause().load(), found = 0;
  if (known != EndCause::kNone)
    return known;
  constexpr size_t kMostRanks = (size_t(1) << EndCause::kPlaceBits) - 2;
  int dead = 0;
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanks) && dead < EndCause::kMostDead; ++i)
    if (ranks[i].rank != self && hasDied(ranks[i]))
      found |= uint64_t(i + 1) << (EndCause::kPlaceBits * dead++);
  if (dead == 0)
    found = EndCause::kLauncher;
  return endCause().compare_exchange_strong(known, found) ? found : known;
}

/// Visits the ranks that had died.
template <typename Visit> void DeathWatch::forDead(uint64_t cause, Visit visit) const {
  if (cause == EndCause::kLauncher || cause == EndCause::kError)
    return;
  for (int i = 0; i < EndCause::kMostDead; ++i)
    if (uint64_t place = EndCause::placeIn(cause, i); place > 0)
      visit(ranks[place - 1]);
}

void DeathWatch::writeOwnFlight(const char *reason) const {
  writeFlight(*own().flight, self, own().name.c_str(), reason);
}

/// Appends "; rank 0 (...) waits in all_reduce #3 (...) for rank 1" for each other rank that waits.
void DeathWatch::appendWaiters(uint64_t cause, FixedText &text) const {
  int waiters = 0;
  for (const Watched &each : ranks) {
    bool isDead = false;
    forDead(cause, [&](const Watched &dead) { isDead |= &dead == &each; });
    if (each.position->waitsFor == RankPosition::kNoWait || isDead)
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
  /// "rank 1 of stage 1 (host node-2, process 4711) died; it was in step 12, at slot 3 (...);
  /// rank 0 of stage 0 (...) waits in ...".
  static OthersEnd find(bool ends, FixedText &text) {
    DeathWatch *watch = watching.load();
    if (!watch)
      return OthersEnd::None;
    uint64_t cause = watch->decide();
    if (cause == EndCause::kError || runEnds(*watch))
      return OthersEnd::Reported;
    if (cause == EndCause::kLauncher)
      return OthersEnd::None;
    if (ends && watch->reporter == DeathWatch::Reporter::Thread)
      sleepFully(DeathWatch::kThreadsPatience); // it ends the process meanwhile
    watch->forDead(cause, [&](const DeathWatch::Watched &dead) {
      text << (text.isEmpty() ? "" : "; ");
      appendDeath(text, dead.name.c_str(), dead.position);
    });
    watch->appendWaiters(cause, text);
    // The last before it is printed: a process that is killed in between prints nothing.
    bool isPrinted = ends && watch->ranks.front().position->isDeathPrinted.exchange(true);
    return isPrinted ? OthersEnd::Reported : OthersEnd::Unsaid;
  }

  static void record(OthersEnd what, const FixedText &deaths) {
    DeathWatch *watch = watching.load();
    if (!watch)
      return;
    if (what == OthersEnd::None)
      return watch->areAll ? void() : watch->writeOwnFlight(kBySignal);
    if (deaths.isEmpty())
      return watch->writeOwnFlight(kReportedByAnother);
    noteLostRank(deaths.get());
    if (what == OthersEnd::Unsaid)
      watch->forDead(watch->decide(), [](const DeathWatch::Watched &dead) {
        FixedText reason;
        appendDeath(reason, dead.name.c_str(), dead.position);
        writeFlight(*dead.flight, dead.rank, dead.name.c_str(), reason.get());
      });
    watch->writeOwnFlight(deaths.get());
  }

  static void foresee() {
    if (DeathWatch *watch = watching.load(); watch && !watch->areAll)
      foreseeFlight(*watch->own().flight, watch->self, watch->own().name.c_str(), kBySignal);
  }

private:
  /// Other signals do not shorten it.
  static void sleepFully(int seconds) {
    timespec left{seconds, 0};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
      ;
  }
  static constexpr char kBySignal[] =
      "a signal, such as of a launcher that has lost a rank of another host";
  /// Has a watcher reported a rank that makes no progress?
  static bool runEnds(const DeathWatch &watch) {
    return std::any_of(watch.ranks.begin(), watch.ranks.end(), [](const DeathWatch::Watched &each) {
      return each.position->runEnds.load();
    });
  }
};

DeathWatch::DeathWatch(int self, std::vector<Watched> ranks, bool areAll, Reporter reporter)
    : self(self), ranks(std::move(ranks)), areAll(areAll), reporter(reporter) {
  static constexpr OthersEndFinder finder{DeathReport::find, DeathReport::record,
                                          DeathReport::foresee};
  own().position->process.store(getpid());
  watching.store(this);
  setOthersEndFinder(&finder);
}

bool DeathWatch::endWithError() {
  uint64_t cause = endCause().load();
  while ((cause == EndCause::kNone || cause == EndCause::kLauncher) &&
         !endCause().compare_exchange_weak(cause, EndCause::kError)) {
  }
  return cause != EndCause::kError;
}

void DeathWatch::end() {
  if (!watching.exchange(nullptr))
    return;
  withdrawFlight(*own().flight, self);
  own().position->process.store(0);
}

} // namespace partita_rt
