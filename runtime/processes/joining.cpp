// Greetings, and waiting for them (joining.h).

#include "processes/joining.h"
#include "partita_rt/machine.h"
#include "partita_rt/types.h"
#include "processes/first_here.h"
#include "processes/lobby.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <poll.h>
#include <unistd.h>

namespace partita_rt::processes {

//===-- Greetings ---------------------------------------------------------------------------===//

static constexpr const char *kProtocol = "partita rendezvous 2";

static int numberFrom(const std::string &text) {
  size_t used = 0;
  int value = -1;
  try {
    value = std::stoi(text, &used);
  } catch (const std::exception &) {
  }
  if (used != text.size() || text.empty() || value < -1)
    fail("a message of another rank is not what it should be");
  return value;
}

std::string textOf(const Greeting &greeting) {
  return pack({kProtocol, greeting.run, std::to_string(greeting.rank),
               std::to_string(greeting.ranks), greeting.peer.host,
               std::to_string(greeting.peer.process), std::to_string(greeting.peer.localRank),
               std::to_string(greeting.peer.port), greeting.machine});
}

Greeting greetingFrom(const std::string &text) {
  std::vector<std::string> fields = unpack(text, 9);
  if (fields[0] != kProtocol)
    fail("a rank of another version: %.40s", fields[0].c_str());
  Greeting greeting;
  greeting.run = fields[1];
  greeting.rank = numberFrom(fields[2]);
  greeting.ranks = numberFrom(fields[3]);
  greeting.peer.host = fields[4];
  greeting.peer.process = numberFrom(fields[5]);
  greeting.peer.localRank = numberFrom(fields[6]);
  greeting.peer.port = numberFrom(fields[7]);
  greeting.machine = fields[8];
  return greeting;
}

Greeting greetingOf(const LaunchEnvironment &environment, int port) {
  Greeting greeting;
  greeting.run = environment.run;
  greeting.rank = environment.rank;
  greeting.ranks = environment.ranks;
  greeting.peer.host = hostName();
  greeting.peer.process = int(getpid());
  greeting.peer.localRank = environment.localRank;
  greeting.peer.port = port;
  greeting.machine = greeting.peer.host + " " + bootId();
  return greeting;
}

std::string textOf(const std::vector<Peer> &peers) {
  std::vector<std::string> fields;
  for (const Peer &peer : peers)
    for (const std::string &field :
         {peer.host, std::to_string(peer.process), std::to_string(peer.localRank), peer.address,
          std::to_string(peer.port)})
      fields.push_back(field);
  return pack(fields);
}

std::vector<Peer> peersFrom(const std::string &text, size_t count) {
  std::vector<std::string> fields = unpack(text, 5 * count);
  std::vector<Peer> peers;
  for (size_t i = 0; i < fields.size(); i += 5)
    peers.push_back({fields[i], numberFrom(fields[i + 1]), numberFrom(fields[i + 2]), fields[i + 3],
                     numberFrom(fields[i + 4])});
  return peers;
}

std::string meetingOf(const LaunchEnvironment &environment) {
  std::string text = environment.run + " at " + environment.address;
  for (int port : environment.ports)
    text += " " + std::to_string(port);
  return text;
}

/// Fails silently if another rank of this machine has given up.
static void checkNobodyGaveUp(const LaunchEnvironment &environment) {
  if (FirstHere::hasSpoken(meetingOf(environment)))
    throw JoiningFailed{"", Speaker::Another};
}

//===-- Rank 0 ------------------------------------------------------------------------------===//

namespace {

std::string textOf(const Peer &peer) {
  return "host " + peer.host + ", process " + std::to_string(peer.process);
}

/// Greets whoever has taken a port of rank 0's. Throws JoiningFailed if that is rank 0 of this run,
/// which then reports both.
void askWhoListens(const LaunchEnvironment &environment, const Greeting &own, int port);

/// Rank 0's wait for greetings, in which it rejects processes that are not ranks of this run.
class Reception {
public:
  Reception(const LaunchEnvironment &environment, const Greeting &own)
      : environment(environment), greetings(size_t(environment.ranks)) {
    joined.connections.resize(size_t(environment.ranks));
    greetings[0] = own;
  }

  Joined run(double seconds) {
    listen();
    auto deadline = Clock::now() + std::chrono::milliseconds(int64_t(seconds * 1000));
    while (missing() > 0 && ending.empty()) {
      if (Clock::now() > deadline)
        ending = lateText(seconds);
      serve();
      beat(seconds);
    }
    if (!ending.empty())
      throw JoiningFailed{ending, Speaker::This, {}};
    fillPeers();
    std::string text = partita_rt::processes::textOf(joined.peers);
    for (auto &connection : joined.connections)
      if (connection)
        connection->send({FrameKind::Welcome, 0, text});
    return std::move(joined);
  }

  /// Tells all ranks that have arrived why all end, and those that arrive a little later, which would
  /// otherwise look for rank 0 in vain.
  void tellEnd() {
    for (auto &connection : joined.connections)
      if (connection)
        tellEnd(*connection);
    auto deadline = Clock::now() + std::chrono::milliseconds(1500);
    while (!ending.empty() && Clock::now() < deadline && missing() > 0)
      serve();
    usleep(20'000); // closing a connection with unread bytes in it discards what was sent
  }

private:
  /// Tells the ranks that have arrived that rank 0 is alive.
  void beat(double seconds) {
    if (Clock::now() < nextBeat)
      return;
    for (auto &connection : joined.connections)
      if (connection) {
        connection->send({FrameKind::Beat, 0, ""});
        connection->flush();
      }
    nextBeat = Clock::now() + beatEvery(seconds);
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

  std::string lateText(double seconds) const {
    std::string text;
    int named = 0;
    for (size_t r = 1; r < greetings.size() && named < 16; ++r)
      if (!greetings[r])
        text += (named++ ? ", " : "") + std::to_string(r);
    std::string problem = problemOfHost(environment.address); // others may have the same
    return (missing() == 1 ? "rank " : "ranks ") + text + (named < missing() ? ", ..." : "") +
           " of " + std::to_string(environment.ranks) + (missing() == 1 ? " has" : " have") +
           " not come to port " + std::to_string(portOf(listener)) + " of host " +
           greetings[0]->peer.host + " within " + std::to_string(int64_t(seconds)) + " s" +
           (problem.empty() ? "" : "; they look for rank 0 at " + problem);
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
    greetings[size_t(greeting.rank)]->peer.address = peerOf(stranger.connection->descriptor());
    stranger.connection->allowLongFrames();
    stranger.connection->send({FrameKind::Accepted, 0, ""});
    stranger.connection->flush();
    joined.connections[size_t(greeting.rank)] = std::move(stranger.connection);
  }

  /// Numbers a host's ranks if the launcher has not.
  void fillPeers() {
    std::map<std::string, int> known;
    for (std::optional<Greeting> &greeting : greetings) {
      int number = known[greeting->machine]++;
      if (greeting->peer.localRank < 0)
        greeting->peer.localRank = number;
      joined.peers.push_back(greeting->peer);
    }
  }

  const LaunchEnvironment &environment;
  Socket listener;
  std::vector<std::optional<Greeting>> greetings; ///< by rank
  Lobby lobby{listener};                          ///< processes that have not said who they are
  std::string ending;                             ///< why all ranks end; empty while they do not
  Clock::time_point nextBeat;                     ///< the first one is sent at once
  Joined joined;
};

} // namespace

Joined joinAsFirst(const LaunchEnvironment &environment, const Greeting &own, double seconds) {
  auto reception = std::make_shared<Reception>(environment, own);
  try {
    return reception->run(seconds);
  } catch (JoiningFailed &failure) {
    // Not before the reason is printed: launchers end this process too when another one has ended.
    if (failure.speaker == Speaker::This)
      failure.tell = [reception] { reception->tellEnd(); };
    throw;
  }
}

//===-- The other ranks ---------------------------------------------------------------------===//

namespace {

/// Another rank's search for rank 0, and its wait until rank 0 has found all others.
class Arrival {
public:
  Arrival(const LaunchEnvironment &environment, const Greeting &own, double seconds)
      : environment(environment), own(own), seconds(seconds) {}

  /// For a process that is rank 0 itself.
  void ask(int port) { tryPort(port); }

  Joined run() {
    find();
    // Rank 0 gives up on its own, and says so. It may have started later than this rank.
    std::optional<Frame> frame;
    do
      frame = waitForFrame(seconds);
    while (frame && frame->kind == FrameKind::Beat);
    if (frame && frame->kind == FrameKind::End)
      throw JoiningFailed{frame->text, Speaker::Another};
    if (!frame && open)
      giveUp(" has not heard of rank 0 at " + where + " for " + secondsText() +
             ": not all ranks had come");
    if (!frame || frame->kind != FrameKind::Welcome)
      throw JoiningFailed{"rank 0 died before all ranks had come", Speaker::First};
    Joined joined;
    joined.peers = peersFrom(frame->text, size_t(environment.ranks));
    joined.connections.push_back(std::move(connection));
    return joined;
  }

private:
  std::string secondsText() const { return std::to_string(int64_t(seconds)) + " s"; }
  [[noreturn]] void giveUp(const std::string &message) const {
    throw JoiningFailed{"rank " + std::to_string(own.rank) + " (" + textOf(own.peer) + ")" +
                            message,
                        Speaker::First};
  }

  /// Returns the next frame; none if the connection is no longer `open` or the time is up.
  std::optional<Frame> waitForFrame(double most) {
    auto deadline = Clock::now() + std::chrono::milliseconds(int64_t(most * 1000));
    for (open = true;;) {
      if (std::optional<Frame> frame = connection->next())
        return frame;
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd wait{connection->descriptor(), POLLIN, 0};
      if (!open || left.count() <= 0 ||
          poll(&wait, 1, int(std::min<int64_t>(left.count(), 250))) < 0)
        return std::nullopt;
      checkNobodyGaveUp(environment);
      open = connection->receive();
    }
  }

  void find() {
    auto begin = Clock::now();
    std::string problem;
    const std::vector<int> &ports = environment.ports;
    for (size_t turn = 0; !connection; ++turn) {
      int port = ports[turn % ports.size()];
      std::string its = tryPort(port);
      if (turn < ports.size() || its.rfind("refused", 0) == 0 || connection) {
        problem = its;
        where = environment.address + ":" + std::to_string(port);
      }
      if (connection)
        return;
      if (Clock::now() - begin > std::chrono::milliseconds(int64_t(seconds * 1000)))
        giveUp(" has not found rank 0 at " + where + " within " + secondsText() + ": " + problem);
      if (turn % ports.size() == ports.size() - 1) {
        checkNobodyGaveUp(environment);
        usleep(Clock::now() - begin < std::chrono::seconds(2) ? 20'000 : 250'000);
      }
    }
  }

  /// Sets `connection` if rank 0 accepts it; else returns why not.
  std::string tryPort(int port) {
    std::string problem;
    Socket socket;
    try {
      socket = connectTo(environment.address, port, 2, problem);
    } catch (const Error &error) {
      giveUp(std::string(" cannot look for rank 0: ") + error.what());
    }
    if (!socket.isOpen())
      return problem;
    connection = std::make_unique<Connection>(std::move(socket));
    connection->send({FrameKind::Hello, 0, textOf(own)});
    connection->flush();
    std::optional<Frame> frame;
    problem = "whoever listens there is not rank 0";
    try {
      frame = waitForFrame(std::min(seconds, 3.0));
      if (!frame && open)
        problem = "whoever listens there does not answer";
    } catch (const Error &) {
    }
    if (frame && frame->kind == FrameKind::End)
      throw JoiningFailed{frame->text, Speaker::Another};
    if (frame && frame->kind == FrameKind::Refused)
      problem = "refused: " + frame->text.substr(0, 300);
    if (!frame || frame->kind != FrameKind::Accepted) {
      connection->send({FrameKind::Goodbye, 0, ""});
      connection->flush();
      connection.reset();
      return problem;
    }
    connection->allowLongFrames();
    return "";
  }

  const LaunchEnvironment &environment;
  const Greeting &own;
  const double seconds;
  std::unique_ptr<Connection> connection; ///< to rank 0, once it is found
  std::string where;                      ///< where it is looked for, or was found
  bool open = false;
};

void askWhoListens(const LaunchEnvironment &environment, const Greeting &own, int port) {
  Arrival(environment, own, 3).ask(port);
}

} // namespace

Joined joinFirst(const LaunchEnvironment &environment, const Greeting &own, double seconds) {
  try {
    return Arrival(environment, own, seconds).run();
  } catch (const Error &error) { // from a malformed message
    throw JoiningFailed{error.what(), Speaker::First};
  }
}

} // namespace partita_rt::processes
