// Rank 0's wait for the other ranks (joining.h).

#include "common/mesh/node_order.h"
#include "partita_rt/types.h"
#include "processes/arrival.h"
#include "processes/lobby.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace partita_rt::processes {

namespace {

/// What a thread of rank 0 finds where the others look for rank 0: a name server may be slow.
struct Search {
  std::atomic<bool> isNowhere{false};   ///< the host is not known
  std::atomic<bool> isElsewhere{false}; ///< it has no address of this host, but may lead here
  std::atomic<bool> isOver{false};
  std::mutex mutex;
  std::optional<JoiningFailed> found; ///< another rank 0
};

/// The thread, which may outlast rank 0's wait.
void lookForOthers(const std::shared_ptr<Search> &search, const LaunchEnvironment &environment,
                   const Greeting &own) {
  search->isNowhere = isUnknown(environment.address);
  search->isElsewhere = !isThisMachine(environment.address);
  try {
    while (search->isElsewhere && !search->isOver) {
      for (int port : environment.ports)
        askWhoListens(environment, own, port);
      sleep(1);
    }
  } catch (const JoiningFailed &failure) {
    std::lock_guard<std::mutex> lock(search->mutex);
    search->found = failure;
  } catch (const std::exception &) { // what listens there is no rank
  }
}

/// Seconds after which rank 0 gives up if nobody has come and its host is not known.
constexpr double kAloneSeconds = 3;

/// "270", "2.7".
std::string secondsText(double seconds) {
  std::string text = std::to_string(std::llround(seconds * 10) / 10);
  int tenths = int(std::llround(seconds * 10) % 10);
  return tenths ? text + "." + std::to_string(tenths) : text;
}

/// Rank 0's wait for greetings, in which it rejects processes that are not ranks of this run.
class Reception {
public:
  Reception(const LaunchEnvironment &environment, const Greeting &own)
      : environment(environment), greetings(size_t(environment.ranks)) {
    joined.connections.resize(size_t(environment.ranks));
    greetings[0] = own;
  }

  ~Reception() {
    if (search)
      search->isOver = true;
  }

  Joined run(double seconds) {
    listen();
    search = std::make_shared<Search>();
    std::thread(lookForOthers, search, environment, *greetings[0]).detach();
    auto begin = Clock::now();
    auto isOver = [&](double after) {
      return Clock::now() - begin > std::chrono::milliseconds(int64_t(after * 1000));
    };
    Speaker speaker = Speaker::This;
    while (missing() > 0 && ending.empty()) {
      // Ranks of this host that look elsewhere know less of the reason: it comes before theirs.
      if (double most = search->isElsewhere ? 0.9 * seconds : seconds; isOver(most)) {
        ending = lateText(most);
        speaker = search->isElsewhere ? Speaker::OneOfHost : Speaker::This;
      } else if (search->isNowhere && missing() == environment.ranks - 1 && isOver(kAloneSeconds)) {
        ending = nowhereText(*greetings[0], problemOfHost(environment.address));
        speaker = Speaker::OneOfHost;
      }
      serve();
      beat(seconds);
      hearOfOthers();
    }
    if (!ending.empty())
      throw JoiningFailed{ending, speaker};
    fillPeers();
    std::string text = partita_rt::processes::textOf(joined.peers);
    for (size_t r = 1; r < joined.connections.size(); ++r)
      joined.connections[r]->send({FrameKind::Welcome, uint32_t(r), text});
    return std::move(joined);
  }

  /// Tells all ranks that have arrived why all end, and those that arrive a little later, which would
  /// otherwise look for rank 0 in vain.
  void tellEnd() {
    if (ending.empty())
      return;
    for (auto &connection : joined.connections)
      if (connection)
        tellEnd(*connection);
    auto deadline = Clock::now() + std::chrono::milliseconds(1500);
    while (Clock::now() < deadline && missing() > 0)
      serve();
    usleep(20'000); // closing a connection with unread bytes in it discards what was sent
  }

private:
  /// Tells the ranks that have arrived that rank 0 is alive.
  void beat(double seconds) {
    if (Clock::now() < nextHeartbeat)
      return;
    for (auto &connection : joined.connections)
      if (connection) {
        connection->send({FrameKind::Heartbeat, 0, ""});
        connection->flush();
      }
    nextHeartbeat = Clock::now() + heartbeatEvery(seconds);
    if (ending.empty())
      checkNobodyGaveUp(environment);
  }

  void listen() {
    std::string ports, problem;
    for (int port : environment.ports) {
      listener = listenOn(port);
      if (listener.isOpen())
        return;
      problem = std::strerror(errno);
      ports += (ports.empty() ? "" : ", ") + std::to_string(port);
      askWhoListens(environment, *greetings[0], port);
    }
    throw JoiningFailed{"rank 0 cannot listen on port " + ports + ": " + problem +
                            "; another run may have it: choose another MASTER_PORT",
                        Speaker::This}; // takes no name: the other run may meet under the same one
  }

  int missing() const { return int(std::count(greetings.begin(), greetings.end(), std::nullopt)); }

  /// Returns "ranks 1, 3" of the others: those that have come, with their hosts, or those that have not.
  std::string othersText(bool haveCome) const {
    constexpr int kMost = 16;
    std::string text;
    int count = 0;
    for (size_t r = 1; r < greetings.size(); ++r)
      if (greetings[r].has_value() == haveCome && count++ < kMost)
        text += (count > 1 ? ", " : "") + std::to_string(r) +
                (haveCome ? " (host " + greetings[r]->peer.host + ")" : "");
    return (count == 1 ? "rank " : "ranks ") + text + (count > kMost ? ", ..." : "");
  }

  std::string lateText(double seconds) const {
    int came = environment.ranks - 1 - missing();
    std::string problem = problemOfHost(environment.address), // others may have the same
        place = environment.address + ", which is no address of this host: start rank 0 there, or "
                                      "set MASTER_ADDR to an address of this host";
    return othersText(false) + " of " + std::to_string(environment.ranks) +
           (missing() == 1 ? " has" : " have") + " not come to port " +
           std::to_string(portOf(listener)) + " of host " + greetings[0]->peer.host + " within " +
           secondsText(seconds) + " s" +
           (came == 0 ? "" : "; " + othersText(true) + (came == 1 ? " has" : " have")) +
           (problem.empty() && !search->isElsewhere
                ? ""
                : "; the others look for rank 0 at " + (problem.empty() ? place : problem));
  }

  /// Ends with another rank 0, if there is one.
  void hearOfOthers() {
    std::lock_guard<std::mutex> lock(search->mutex);
    if (!search->found || !ending.empty())
      return;
    ending = search->found->message;
    throw *search->found;
  }

  void tellEnd(Connection &connection) {
    connection.send({FrameKind::End, 0, ending});
    connection.flush();
  }

  void serve() {
    std::vector<pollfd> waits;
    lobby.addTo(waits);
    for (auto &connection : joined.connections)
      if (connection)
        waits.push_back({connection->descriptor(), POLLIN, 0});
    poll(waits.data(), waits.size(), 100);
    for (size_t r = 1; r < greetings.size(); ++r)
      if (joined.connections[r])
        hear(int(r));
    lobby.serve(
        [&](Lobby::Guest &stranger, const Frame &frame) {
          if (frame.kind != FrameKind::Hello)
            fail("a message that is not a greeting");
          greet(stranger, greetingFrom(frame.text));
        },
        [](Lobby::Guest &stranger, const std::string &reason) {
          stranger.connection->send({FrameKind::Refused, 0, reason});
          stranger.connection->flush();
        });
  }

  /// A rank that has arrived sends nothing more, unless it was not answered in time: then it closes
  /// the connection and tries again.
  void hear(int rank) {
    auto &connection = joined.connections[size_t(rank)];
    bool open = connection->receive();
    try {
      if (connection->next())
        greetings[size_t(rank)].reset();
      else if (open)
        return;
    } catch (const Error &) { // not a frame: the peer is not one of ours
    }
    connection.reset();
    if (ending.empty() && greetings[size_t(rank)])
      ending = "rank " + std::to_string(rank) + " (" + textOf(greetings[size_t(rank)]->peer) +
               ") died before all ranks had come";
  }

  void greet(Lobby::Guest &stranger, const Greeting &greeting) {
    if (greeting.run != environment.run)
      fail("this is rank 0 of another run");
    const Greeting &own = *greetings[0];
    if (greeting.hostAndBoot == own.hostAndBoot && greeting.peer.process == own.peer.process)
      fail("this is rank 0 itself"); // which has asked who listens where the others look for it
    std::string who = "rank " + std::to_string(greeting.rank) + " (" + textOf(greeting.peer) + ")";
    if (ending.empty() && greeting.ranks != environment.ranks)
      ending = who + " was started as one of " + std::to_string(greeting.ranks) +
               " ranks, rank 0 as one of " + std::to_string(environment.ranks);
    bool known = greeting.rank >= 0 && greeting.rank < environment.ranks;
    if (ending.empty() && !known)
      fail("there is no rank %d of %d", greeting.rank, environment.ranks);
    if (ending.empty() && greetings[size_t(greeting.rank)])
      ending = "two processes were started as rank " + std::to_string(greeting.rank) + ": " +
               textOf(greetings[size_t(greeting.rank)]->peer) + ", and " + textOf(greeting.peer);
    if (!ending.empty()) {
      tellEnd(*stranger.connection);
      stranger.isRefused = true;
      if (known)
        greetings[size_t(greeting.rank)] = greeting;
      return;
    }
    greetings[size_t(greeting.rank)] = greeting;
    Peer &peer = greetings[size_t(greeting.rank)]->peer;
    peer.address = peerOf(stranger.connection->descriptor());
    peer.isBesideRankZero = peer.host == own.peer.host && isThisMachine(peer.address);
    stranger.connection->allowLongFrames();
    stranger.connection->send({FrameKind::Accepted, 0, ""});
    stranger.connection->flush();
    joined.connections[size_t(greeting.rank)] = std::move(stranger.connection);
  }

  /// Numbers a host's ranks if the launcher has not, and all of them as the mesh has them.
  void fillPeers() {
    std::map<std::string, int> known;
    std::vector<std::string> nodes;
    for (std::optional<Greeting> &greeting : greetings) {
      int number = known[greeting->hostAndBoot]++;
      if (greeting->peer.localRank < 0)
        greeting->peer.localRank = number;
      std::optional<int> node = pretendedNode(greeting->rank);
      nodes.push_back(greeting->hostAndBoot + (node ? " " + std::to_string(*node) : ""));
    }
    std::vector<int> ranks = meshRanks(nodes);
    auto arrived = std::move(joined.connections);
    joined.connections.resize(arrived.size());
    joined.peers.resize(arrived.size());
    for (size_t launched = 0; launched < ranks.size(); ++launched) {
      size_t rank = size_t(ranks[launched]);
      joined.peers[rank] = greetings[launched]->peer;
      joined.peers[rank].launcherNumber = int(launched);
      joined.connections[rank] = std::move(arrived[launched]);
    }
  }

  const LaunchEnvironment &environment;
  Socket listener;
  std::vector<std::optional<Greeting>> greetings; ///< by the launcher's number, as all here
  Lobby lobby{listener};                          ///< processes that have not said who they are
  std::string ending;                             ///< why all ranks end; empty while they do not
  Clock::time_point nextHeartbeat;                ///< the first one is sent at once
  Joined joined;
  std::shared_ptr<Search> search; ///< null until it listens
};

} // namespace

Joined receiveRanks(const LaunchEnvironment &environment, const Greeting &own, double seconds) {
  auto reception = std::make_shared<Reception>(environment, own);
  try {
    return reception->run(seconds);
  } catch (JoiningFailed &failure) {
    // Not before the reason is printed: launchers end this process too when another one has ended.
    failure.tell = [reception] { reception->tellEnd(); };
    throw;
  }
}

} // namespace partita_rt::processes
