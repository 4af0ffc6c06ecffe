// Orders collectives, keeps their records and waits for them (group.h).

#include "cpu/groups/group.h"
#include "common/mesh/launch.h"
#include "common/watch/watch.h"
#include "cpu/watch/waits.h"

#include <algorithm>
#include <ctime>
#include <sched.h>

namespace partita_rt {

Pending OrderedGroup::start(Request request) {
  // Complete the oldest first: until then its entry in the rings is in use, and meanwhile advance()
  // moves on to later collectives, up to `started`, which need entries of their own.
  uint64_t number = started + 1;
  if (number > kRing)
    completeThrough(number - kRing);
  CollectiveCount &count = counts[int(request.kind)];
  ++count.calls;
  count.bytes += request.bytes(groupSize);
  signatures[number % kRing] = signatureOf(request, number, groupSize);
  ring[number % kRing] = std::move(request);
  started = number;
  open.push_back(number);
  if (waits) {
    const Request &its = ring[number % kRing];
    waits->move();
    waits->flight().note(Flight::Start, int64_t(number), its.bytes(groupSize), axis(), " ",
                         its.why);
  }
  publish(number);
  return {this, number};
}

void OrderedGroup::finish(uint64_t number) {
  auto entry = std::find(open.begin(), open.end(), number);
  if (entry == open.end())
    fail("collective #%llu of axis %s is waited for twice", (unsigned long long)number, axis());
  open.erase(entry);
  completeThrough(number);
  if (waits)
    waits->flight().note(Flight::Done, int64_t(number), 0, axis());
}

int64_t OrderedGroup::poll(int64_t bytes) {
  if (completed == started)
    return 0;
  int64_t begin = worked, end = worked + bytes;
  polling = true;
  while (worked < end && completed < started && advance())
    ;
  polling = false;
  return worked - begin;
}

void OrderedGroup::completeThrough(uint64_t number) {
  polling = false;
  while (completed < number)
    waitUntil(
        [&] {
          if (waits)
            waits->moveMessages();
          return advance();
        },
        failureFlag(), [&] { return awaited(); }, waits,
        [&] {
          int rank = awaitedRank();
          return rank < 0 ? -1 : ranksHere[size_t(rank)]; // called only if there are waits
        });
}

std::string OrderedGroup::memberText(int member) const {
  std::string inGroup = "rank " + std::to_string(member);
  std::string ofAxis = inGroup + " of axis " + axisName;
  if (ranksHere.empty())
    return ofAxis;
  std::string inWorld = "rank " + std::to_string(ranksHere[size_t(member)]);
  return int(ranksHere.size()) == waits->ranks() ? inWorld : inWorld + " (" + ofAxis + ")";
}

Pending LonelyGroup::start(Request request) {
  int64_t width = sizeOf(request.dtype);
  for (const Item &item : request.items)
    if (item.from != item.to)
      std::memmove(item.to, item.from, size_t(item.count * width));
  return {};
}

void FailureFlag::raise(int rank, const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (flag.load(std::memory_order_relaxed))
    return;
  failedRank = rank;
  text = message;
  flag.store(true, std::memory_order_release);
}

std::string FailureFlag::message() const {
  std::lock_guard<std::mutex> lock(mutex);
  return text;
}

/// How much longer a wait lasts if another rank is about to report why the run ends.
constexpr double kReportSeconds = 5;

/// Returns after how many seconds a wait fails. The watch, if there is one, reports before that, for
/// what it can explain.
static double secondsOfWait(double timeout, const RankWaits *waits, int peer) {
  if (!waits)
    return timeout;
  if (waits->mayTakeLong(peer))
    return longSeconds(timeout);
  return timeout + patienceSeconds(timeout);
}

void waitUntil(const std::function<bool()> &ready, const FailureFlag *failure,
               const std::function<std::string()> &describe, RankWaits *waits,
               const std::function<int()> &peer) {
  for (int i = 0; i < 200; ++i) {
    if (ready())
      return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  // Go by the clock, not by iterations, which take long if there are more ranks than cores. The
  // awaited rank may change during the wait: note it again, less and less often.
  double noteAt = 0.02, timeout = timeoutSeconds();
  OwnClock clock(OwnClock::longest(timeout));
  for (int64_t turn = 0; !ready(); ++turn) {
    if (failure && failure->raised())
      throw StoppedByOther("stopped because rank " + std::to_string(failure->rank()) + " failed");
    double waited = clock.advance();
    if (waits && waited > noteAt) {
      waits->noteWait(peer(), describe());
      noteAt += std::min(noteAt, 0.25);
    }
    if (turn < 2000) {
      sched_yield();
      continue;
    }
    timespec pause{0, turn < 4000 ? 20'000 : 200'000};
    nanosleep(&pause, nullptr);
    if (waited <= timeout)
      continue;
    double most = secondsOfWait(timeout, waits, waits ? peer() : -1);
    if (waits && waits->reportIsDue())
      most += kReportSeconds;
    if (waited > most)
      fail("waited %.0f s in %s%s", waited, describe().c_str(),
           waits ? waits->whyOf(peer()).c_str() : "");
  }
  if (waits)
    waits->noteWaitEnds();
}

} // namespace partita_rt
