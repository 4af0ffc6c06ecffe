// Looks for rank 0 and waits for its answer (arrival.h).

#include "processes/arrival.h"
#include "partita_rt/types.h"
#include "processes/host_speaker.h"

#include <algorithm>
#include <poll.h>
#include <unistd.h>

namespace partita_rt::processes {

std::string meetingOf(const LaunchEnvironment &environment) {
  std::string text = environment.run + " at " + environment.address;
  for (int port : environment.ports)
    text += " " + std::to_string(port);
  return text;
}

std::string textOf(const Peer &peer) {
  return "host " + peer.host + ", process " + std::to_string(peer.process);
}

std::string nowhereText(const Greeting &own, const std::string &problem) {
  return "rank " + std::to_string(own.rank) + " (" + textOf(own.peer) +
         ") cannot meet the others at " + problem + "; MASTER_ADDR must name rank 0's host";
}

void checkNobodyGaveUp(const LaunchEnvironment &environment) {
  if (HostSpeaker::hasSpoken(meetingOf(environment)))
    throw JoiningFailed{"", Speaker::Another};
}

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
    while (frame && frame->kind == FrameKind::Heartbeat);
    if (frame && frame->kind == FrameKind::End)
      throw JoiningFailed{frame->text, Speaker::Another};
    if (!frame && open)
      giveUp(" has not heard of rank 0 at " + where + " for " + secondsText() +
             ": not all ranks had come");
    if (!frame || frame->kind != FrameKind::Welcome)
      throw JoiningFailed{"rank 0 died before all ranks had come", Speaker::OneOfHost};
    Joined joined;
    joined.peers = peersFrom(frame->text, size_t(environment.ranks));
    joined.rank = int(frame->number);
    if (joined.rank <= 0 || joined.rank >= environment.ranks)
      fail("received a malformed message from rank 0");
    joined.connections.push_back(std::move(connection));
    return joined;
  }

private:
  std::string secondsText() const { return std::to_string(int64_t(seconds)) + " s"; }
  [[noreturn]] void giveUp(const std::string &message) const {
    throw JoiningFailed{"rank " + std::to_string(own.rank) + " (" + textOf(own.peer) + ")" +
                            message,
                        Speaker::OneOfHost};
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
      NoAnswer its = tryPort(port);
      if (turn < ports.size() || its.isRefusal || connection) {
        problem = its.problem;
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

  /// Why rank 0 is not at a port.
  struct NoAnswer {
    std::string problem;
    bool isRefusal = false; ///< whoever listens there has said why it is not this rank's
  };
  /// Sets `connection` if rank 0 accepts it; else returns why not.
  NoAnswer tryPort(int port) {
    std::string problem;
    Socket socket;
    try {
      socket = connectTo(environment.address, port, 2, problem);
    } catch (const Error &error) {
      throw JoiningFailed{nowhereText(own, error.what()), Speaker::OneOfHost};
    }
    if (!socket.isOpen())
      return {problem};
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
    bool isRefusal = frame && frame->kind == FrameKind::Refused;
    if (isRefusal)
      problem = "refused: " + frame->text.substr(0, 300);
    if (!frame || frame->kind != FrameKind::Accepted) {
      connection->send({FrameKind::Goodbye, 0, ""});
      connection->flush();
      connection.reset();
      return {problem, isRefusal};
    }
    connection->allowLongFrames();
    return {};
  }

  const LaunchEnvironment &environment;
  const Greeting &own;
  const double seconds;
  std::unique_ptr<Connection> connection; ///< to rank 0, once it is found
  std::string where;                      ///< where it is looked for, or was found
  bool open = false;
};

} // namespace

void askWhoListens(const LaunchEnvironment &environment, const Greeting &own, int port) {
  Arrival(environment, own, 3).ask(port);
}

Joined joinRankZero(const LaunchEnvironment &environment, const Greeting &own, double seconds) {
  try {
    return Arrival(environment, own, seconds).run();
  } catch (const Error &error) { // from a malformed message
    throw JoiningFailed{error.what(), Speaker::OneOfHost};
  }
}

} // namespace partita_rt::processes
