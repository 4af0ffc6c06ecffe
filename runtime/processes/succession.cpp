// Ranks ask each other which one prints (succession.h).

#include "processes/succession.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/types.h"
#include "processes/greeting.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace partita_rt::processes {

std::string startName(const std::string &run, const std::vector<Peer> &peers) {
  std::string text = run + " " + textOf(peers);
  int64_t size = int64_t(text.size());
  return fingerprintText(
      fingerprint(reinterpret_cast<const unsigned char *>(text.data()), size, size));
}

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

/// Seconds that live processes have to answer, all of them together: a host that is gone answers none.
constexpr double kAnswers = 0.5;
/// The same to be told something.
constexpr double kTold = 1;

namespace {

/// Connections to several ranks at once, over which each gets one frame.
class Calls {
public:
  Calls(const std::vector<Peer> &peers, size_t first, size_t end, const Frame &frame) {
    for (size_t r = first; r < end; ++r)
      if (Socket socket = beginConnecting(peers[r].address, peers[r].port); socket.isOpen()) {
        open.push_back(std::make_unique<Connection>(std::move(socket)));
        open.back()->send(frame);
      }
  }

  /// Sends and receives until `isDone` says so of one of them, for at most so many seconds. `isDone` gets
  /// a connection after each change, and may throw Error for what no rank would send; returning
  /// nothing closes the connection.
  bool run(double seconds, const std::function<std::optional<bool>(Connection &)> &isDone) {
    auto deadline = Clock::now() + std::chrono::milliseconds(int64_t(seconds * 1000));
    while (!open.empty()) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0)
        break;
      std::vector<pollfd> waits;
      for (auto &each : open)
        waits.push_back({each->descriptor(), short(each->hasUnsent() ? POLLOUT : POLLIN), 0});
      if (poll(waits.data(), waits.size(), int(left.count())) <= 0)
        continue; // a signal, or the time is over
      for (size_t i = 0; i < waits.size(); ++i)
        if (waits[i].revents != 0 && advance(open[i], isDone))
          return true;
      open.erase(std::remove(open.begin(), open.end(), nullptr), open.end());
    }
    return false;
  }

private:
  static bool advance(std::unique_ptr<Connection> &call,
                      const std::function<std::optional<bool>(Connection &)> &isDone) {
    try {
      bool isOpen = call->flush() && call->receive();
      std::optional<bool> done = isDone(*call);
      if (!done || !isOpen)
        call.reset();
      return done.value_or(false);
    } catch (const Error &) { // whoever listens there is no rank
      call.reset();
      return false;
    }
  }

  std::vector<std::unique_ptr<Connection>> open;
};

} // namespace

bool anotherSpeaks(const std::vector<Peer> &peers, int rank, const std::string &run,
                   const std::string &message) {
  // Cut the message to what a stranger may send.
  std::string text = pack({run, message.substr(0, Connection::kGreetingBytes / 2)});
  return Calls(peers, 1, size_t(rank), {FrameKind::Lost, 0, text})
      .run(kAnswers, [&](Connection &call) -> std::optional<bool> {
        std::optional<Frame> frame = call.next();
        if (!frame)
          return false;
        return frame->kind == FrameKind::Here && frame->text == run ? std::optional(true)
                                                                    : std::nullopt;
      });
}

void tellOver(const std::vector<Peer> &peers, int rank, const std::string &run) {
  Calls(peers, size_t(rank) + 1, peers.size(), {FrameKind::Over, 0, pack({run, ""})})
      .run(kTold, [](Connection &call) {
        return call.hasUnsent() ? std::optional(false) : std::nullopt; // it is told
      });
}

} // namespace partita_rt::processes
