// The processes of a run (rendezvous.h).

#include "processes/rendezvous.h"
#include "common/start_marks.h"
#include "partita_rt/timeout.h"
#include "processes/host_speaker.h"
#include "processes/monitor.h"

#include <algorithm>

namespace partita_rt::processes {

Rendezvous::Rendezvous(const LaunchEnvironment &itsEnvironment, const std::string &name,
                       double timeout, const std::function<std::string(int rank)> &rankName)
    : environment(itsEnvironment), self(environment.rank), ending(std::make_unique<FailureExit>()) {
  ending->name = name;
  if (environment.ranks == 1) {
    alone = {greetingOf(environment, 0).peer};
    alone[0].localRank = std::max(alone[0].localRank, 0);
    return;
  }
  Socket listener = listenOn(0);
  Greeting own = greetingOf(environment, listener.isOpen() ? portOf(listener) : 0);
  double seconds = std::min(timeout, kMostToJoin);
  try {
    Joined joined = environment.rank == 0 ? receiveRanks(environment, own, seconds)
                                          : joinRankZero(environment, own, seconds);
    std::string start = startName(environment.run, joined.peers);
    for (size_t r = 0; r < joined.peers.size(); ++r)
      joined.peers[r].name = rankName ? rankName(int(r)) : "rank " + std::to_string(r);
    self = joined.rank;
    monitor = std::make_unique<Monitor>(self, std::move(joined), timeout, start,
                                        std::move(listener), *ending);
  } catch (const JoiningFailed &failure) {
    ending->abort = failure.tell;
    if (failure.speaker != Speaker::OneOfHost)
      endProcess(*ending, failure.message, failure.speaker == Speaker::This);
    HostSpeaker speaker(meetingOf(environment));
    ending->abort = [&] {
      if (failure.tell)
        failure.tell();
      speaker.linger();
    };
    endProcess(*ending, failure.message, speaker.speaks());
  }
}

Rendezvous::~Rendezvous() = default;

const std::vector<Peer> &Rendezvous::peers() const { return monitor ? monitor->peers() : alone; }

std::vector<int> Rendezvous::launcherNumbers() const {
  std::vector<int> launched;
  for (const Peer &peer : peers())
    launched.push_back(peer.launcherNumber);
  return launched;
}

std::vector<std::string> Rendezvous::allGather(const std::string &mine, const std::string &what) {
  return monitor ? monitor->gather(what, mine) : std::vector<std::string>{mine};
}

std::string Rendezvous::broadcast(const std::string &text, const std::string &what, int root) {
  return allGather(root == rank() ? text : "", what)[size_t(root)];
}

std::string Rendezvous::agree(const std::string &error) {
  return firstError(allGather(error, "the end of the set-up"));
}

void Rendezvous::fail(const std::string &message) {
  markError(message);
  report(Cause::Error, message, "");
}

void Rendezvous::report(Cause cause, const std::string &message, const std::string &question) {
  if (monitor)
    monitor->report(cause, message, question);
  endProcess(*ending, message, true);
}

void Rendezvous::setPosition(RankPosition &position) {
  if (monitor)
    monitor->setPosition(position);
}

void Rendezvous::see(int rank, const RankPosition &position) {
  if (monitor)
    monitor->see(rank, position);
}

const RankPosition *Rendezvous::positionOf(int rank) const {
  return monitor ? monitor->positionOf(rank) : nullptr;
}

void Rendezvous::setTimeout(double seconds) {
  if (monitor)
    monitor->setTimeout(seconds);
}

void Rendezvous::setName(const std::string &name) {
  ending->name = name;
  if (monitor)
    monitor->setName(name);
}

void Rendezvous::setAnswer(std::function<std::string(const std::string &question)> answer) {
  if (monitor)
    monitor->setAnswer(std::move(answer));
}

void Rendezvous::setRecord(std::function<void(const std::string &)> record) {
  if (monitor)
    monitor->setRecord(std::move(record));
  else
    ending->record = std::move(record);
}

void Rendezvous::setAbort(std::function<void()> abort) {
  if (monitor)
    monitor->setAbort(std::move(abort));
}

} // namespace partita_rt::processes
