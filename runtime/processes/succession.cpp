// Ranks ask each other which one prints (succession.h).

#include "processes/succession.h"
#include "partita_rt/types.h"

namespace partita_rt::processes {

//===-- Answering ---------------------------------------------------------------------------===//

std::vector<Frame> OwnPort::serve() {
  std::vector<Frame> said;
  lobby.serve([&](Lobby::Guest &visitor, const Frame &frame) {
    std::vector<std::string> fields = unpack(frame.text, 2);
    if (fields[0] != run || (frame.kind != FrameKind::Lost && frame.kind != FrameKind::Over))
      fail("no rank of this run");
    if (frame.kind == FrameKind::Lost)
      visitor.connection->send({FrameKind::Here, 0, run});
    said.push_back({frame.kind, 0, fields[1]});
  });
  return said;
}

//===-- Asking ------------------------------------------------------------------------------===//

/// Max seconds that a live process takes to answer.
constexpr double kAnswers = 0.5;

/// Sends the rank a frame over a new connection and returns that; null if it cannot be reached.
static std::unique_ptr<Connection> send(const Peer &peer, FrameKind kind, const std::string &run,
                                        const std::string &message) {
  std::string problem;
  try {
    Socket socket = connectTo(peer.address, peer.port, kAnswers, problem);
    if (!socket.isOpen())
      return nullptr;
    auto connection = std::make_unique<Connection>(std::move(socket));
    // Cut the message to what a stranger may send.
    connection->send({kind, 0, pack({run, message.substr(0, Connection::kGreetingBytes / 2)})});
    return connection->flush() ? std::move(connection) : nullptr;
  } catch (const Error &) {
    return nullptr;
  }
}

static bool lives(const Peer &peer, const std::string &run, const std::string &message) {
  std::unique_ptr<Connection> connection = send(peer, FrameKind::Lost, run, message);
  auto deadline = Clock::now() + std::chrono::milliseconds(int64_t(kAnswers * 1000));
  for (bool open = bool(connection); open;) {
    try {
      if (std::optional<Frame> frame = connection->next())
        return frame->kind == FrameKind::Here && frame->text == run;
    } catch (const Error &) {
      return false;
    }
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{connection->descriptor(), POLLIN, 0};
    if (left.count() <= 0 || poll(&wait, 1, int(left.count())) < 0)
      return false;
    open = connection->receive();
  }
  return false;
}

bool anotherSpeaks(const std::vector<Peer> &peers, int rank, const std::string &run,
                   const std::string &message) {
  for (int other = 1; other < rank; ++other)
    if (lives(peers[size_t(other)], run, message))
      return true;
  return false;
}

void tellOver(const std::vector<Peer> &peers, int rank, const std::string &run) {
  auto deadline = Clock::now() + std::chrono::milliseconds(1500);
  for (size_t other = size_t(rank) + 1; other < peers.size() && Clock::now() < deadline; ++other)
    send(peers[other], FrameKind::Over, run, "");
}

} // namespace partita_rt::processes
