// The thread that watches other ranks (watcher.h).

#include "cpu/watch/watcher.h"
#include "common/last_line.h"
#include "common/mesh/launch.h"
#include "common/start_marks.h"
#include "common/temporary_file.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/machine.h"
#include "partita_rt/printable.h"
#include "partita_rt/signal_masks.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace partita_rt {

/// So many heartbeats later than this process begins to send them, those of all nodes should have arrived.
constexpr int kBeatsUntilHeard = 10;
/// How long a rank waits for another one that is about to report, in seconds.
constexpr double kOthersPatience = 1;

Watcher::Watcher(std::string itsName, RanksInSight itsSight, std::function<bool()> isFailing)
    : name(std::move(itsName)), sight(std::move(itsSight)), isFailing(std::move(isFailing)),
      timeout(timeoutSeconds()) {
  sendHeartbeats(); // before the rank does anything
  thread = std::thread([this] { loop(); });
}

Watcher::~Watcher() { stop(); }

void Watcher::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ends = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void Watcher::endOthers() {
  stop(); // it would end this process too
  tellNode();
  tellOtherNodes();
  awaitFlights();
}

void Watcher::tellOtherNodes() const {
  if (sight.remote)
    sight.remote->tellEnd();
}

/// Lets all ranks write their flight recorders, since launchers kill them soon after this process has ended. Of a second
/// rank that is stopped, nobody writes it: then this takes the whole second.
void Watcher::awaitFlights() const {
  constexpr int kMostMilliseconds = 1000, kRemoteMilliseconds = 250, kLook = 10;
  auto isWritten = [this](int rank) {
    return sight.flights[size_t(rank)]->file.load() == FlightRing::File::Written;
  };
  for (int passed = 0; passed < kMostMilliseconds; passed += kLook, usleep(1000 * kLook))
    if ((!writesFlights() || std::all_of(sight.local.begin(), sight.local.end(), isWritten)) &&
        (!sight.remote || passed >= kRemoteMilliseconds))
      break;
}

void Watcher::sleep() {
  double seconds = heartbeatSeconds(timeout);
  if (sight.remote) { // also ends when a datagram arrives; the destructor waits for this
    sight.remote->wait(std::min(seconds, 0.1));
    return;
  }
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return ends; });
}

bool Watcher::runEnds() const {
  return std::any_of(sight.local.begin(), sight.local.end(),
                     [&](int rank) { return sight.positions[size_t(rank)]->runEnds.load(); });
}

/// A rank has printed why the run ends.
void Watcher::tellNode() const {
  for (int rank : sight.local)
    sight.positions[size_t(rank)]->runEnds = true;
}

/// Several processes may find the same: of those that share memory, the first one prints. If it was killed or stopped before
/// it has, another one does.
bool Watcher::claimReport() const {
  std::atomic<int32_t> &reporter = sight.positions[size_t(sight.local.front())]->reporter;
  int32_t process = 0;
  return reporter.compare_exchange_strong(process, getpid()) ||
         (processCannotRun(process) && reporter.compare_exchange_strong(process, getpid()));
}

/// Ranks that wait leave it to a report that is due, or no longer do.
void Watcher::expectReport(const std::vector<int> &ranks, bool isDue) const {
  for (int rank : ranks)
    sight.positions[size_t(rank)]->reportIsDue = isDue;
}

void Watcher::sendHeartbeats() {
  for (int rank : sight.own) {
    RankPosition &position = *sight.positions[size_t(rank)];
    position.beats.store(position.beats.load() + 1, std::memory_order_release);
    if (sight.remote)
      sight.remote->send(position);
  }
}

/// The user could not know otherwise that ranks there are not watched. One process says so.
void Watcher::warnOfUnheardNodes() const {
  if (!sight.remote || !sight.remote->watches() || sight.remote->turn() != 0)
    return;
  for (int rank : sight.remote->unheardNodes())
    std::fprintf(
        stderr,
        "%s: warning: no heartbeat has arrived from %s or others of its host (they are UDP datagrams; does a firewall drop "
        "them?): if one of these ranks stops, only ranks that wait for it report it\n",
        name.c_str(), printable(sight.names[size_t(rank)]).c_str());
}

void Watcher::loop() {
  blockSignals(); // they are for the rank's own thread
  int self = sight.own.size() == 1 ? sight.own[0] : -1;
  Watch watch(sight.names, self);
  watch.setRuns([this](int rank) {
    int process = sight.positions[size_t(rank)]->process;
    bool isLocal = std::find(sight.local.begin(), sight.local.end(), rank) != sight.local.end();
    return isLocal && process > 0 && !processCannotRun(process);
  });
  std::vector<const RankPosition *> positions(sight.positions.begin(), sight.positions.end());
  OwnClock clock(OwnClock::longest(timeout));
  double beatAt = 0, lookAt = 0;
  int beats = 0;
  for (;;) {
    double now = clock.advance();
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (ends)
        break;
    }
    bool due = now >= beatAt;
    if (due) {
      beatAt = now + heartbeatSeconds(timeout);
      sendHeartbeats();
      if (++beats == kBeatsUntilHeard)
        warnOfUnheardNodes();
    }
    UdpHeartbeats::Heard heard =
        sight.remote ? sight.remote->receive(sight.positions) : UdpHeartbeats::Heard();
    if (heard.ends || runEnds())
      end();
    if (heard.claim) { // another node's rank will have ended the run by then
      lookAt = now + kOthersPatience;
      expectReport(sight.own, true);
    } else if (lookAt > 0 && now >= lookAt) {
      lookAt = 0;
      expectReport(sight.own, false);
    }
    if (due && now >= lookAt && !(isFailing && isFailing()))
      if (std::string text = watch.look(positions, now, timeout); !text.empty())
        report(text, watch.subject());
    sleep();
  }
  for (int rank : sight.own) {
    RankPosition &position = *sight.positions[size_t(rank)];
    position.phase = Phase::Ended;
    for (int i = 0; sight.remote && i < 3; ++i) // one of them arrives
      sight.remote->send(position);
  }
}

/// Waits until no other node's rank reports the same, or ends with it. A rank that is about to report
/// says so; of several, that of the lowest turn goes on, and the others wait for it.
void Watcher::awaitTurn() {
  sight.remote->tellClaim();
  double patience = 0.25;
  for (double waited = 0; waited < patience; waited += 0.02) {
    usleep(20'000);
    UdpHeartbeats::Heard heard = sight.remote->receive(sight.positions);
    if (heard.ends)
      end();
    if (heard.claim.value_or(sight.remote->turn()) < sight.remote->turn())
      patience = kOthersPatience;
  }
}

/// Prints first: a launcher may end this process while it writes files.
void Watcher::report(const std::string &text, int subject) {
  if (!claimReport())
    return;
  expectReport(sight.local, true);
  if (sight.remote)
    awaitTurn();
  printLastLine(name, text);
  noteLostRank(text.c_str());
  tellNode();
  std::vector<int> writes = sight.own;
  bool isOwn = std::find(writes.begin(), writes.end(), subject) != writes.end();
  if (!isOwn && sight.flights[size_t(subject)]) // it cannot write by itself
    writes.push_back(subject);
  writeFlights(writes, text);
  tellOtherNodes();
  awaitFlights();
  removeTemporaryFiles();
  _exit(failureStatus()); // without waiting for other threads; launchers end the stopped ones
}

void Watcher::writeFlights(const std::vector<int> &ranks, const std::string &reason) const {
  for (int rank : ranks)
    writeFlight(*sight.flights[size_t(rank)], rank, sight.names[size_t(rank)].c_str(),
                reason.c_str());
}

/// Ends a process, on whose behalf another one has printed why.
void Watcher::end() const {
  if (failureStatus() == kRefused) // all reports before a step are of a rank that makes no progress
    noteLostRank();
  expectReport(sight.own, true);
  tellNode(); // for the handler of a launcher's signal
  writeFlights(sight.own, kReportedByAnother);
  usleep(500'000); // the one that has printed ends first: launchers end all when one has ended
  removeTemporaryFiles();
  _exit(failureStatus());
}

} // namespace partita_rt
