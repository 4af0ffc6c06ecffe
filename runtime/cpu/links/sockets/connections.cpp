// Connects ranks (connections.h).

#include "cpu/links/sockets/connections.h"
#include "partita_rt/machine.h"
#include "partita_rt/types.h"
#include "processes/addresses.h"
#include "processes/hub.h"
#include "processes/lobby.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <random>
#include <sstream>

namespace partita_rt {

using processes::Clock;
using processes::Connection;
using processes::Frame;
using Guest = processes::Lobby::Guest;
using processes::Socket;

namespace {

/// Frames between two ranks that connect.
enum Step : uint8_t {
  Greets = 1, ///< number: the rank that connects; the run's secret, the rank that it looks for
  Accepts,    ///< the answer
  Goes,       ///< this connection is the one; nothing has been sent over another
};

constexpr size_t kMostAddresses = 16;
constexpr std::chrono::seconds kAnswer(3); ///< that an answer may take

std::string randomText() {
  std::random_device random;
  std::ostringstream text;
  for (int i = 0; i < 4; ++i)
    text << std::hex << random() << ' ';
  return text.str();
}

bool isLoopback(const std::string &address) {
  return address.rfind("127.", 0) == 0 || address.rfind("::ffff:127.", 0) == 0 || address == "::1";
}

/// A connection that this rank has asked another one for.
struct Attempt {
  int peer;
  size_t address = 0;
  std::unique_ptr<Connection> connection = nullptr;
  Clock::time_point since = {};
  std::string problem = {};
};

} // namespace

Connections::Connections(processes::Rendezvous &rendezvous, const std::string &address)
    : rendezvous(rendezvous), listener(processes::listenOn(0)) {
  if (!listener.isOpen())
    fail("this rank cannot listen for the others: %s", std::strerror(errno));
  std::string boot = bootId(), addresses;
  for (const in6_addr &each : processes::ownAddresses(kMostAddresses))
    addresses += processes::textOf(each) + " ";
  std::vector<std::string> all = rendezvous.allGather(
      processes::pack({randomText(), std::to_string(processes::portOf(listener)), boot, addresses}),
      "addresses");
  secret = processes::unpack(all[0], 4)[0];
  for (size_t r = 0; r < all.size(); ++r) {
    std::vector<std::string> fields = processes::unpack(all[r], 4);
    Endpoint endpoint{std::atoi(fields[1].c_str()), {}};
    if (fields[2] == boot) // perhaps in another container, so only a first guess
      endpoint.addresses.push_back("127.0.0.1");
    std::string seen = r == 0 ? address : rendezvous.peers()[r].address; // from rank 0's host
    if (!isLoopback(seen))
      endpoint.addresses.push_back(seen);
    std::istringstream stream(fields[3]);
    for (std::string each; stream >> each;)
      if (!isLoopback(each) && each != seen)
        endpoint.addresses.push_back(each);
    if (endpoint.addresses.empty())
      endpoint.addresses.push_back(seen);
    endpoints.push_back(std::move(endpoint));
  }
}

//===-- One meeting -------------------------------------------------------------------------===//

class Connections::Connector {
public:
  Connector(const Connections &all, const std::set<int> &peers, Streams &streams)
      : all(all), self(all.rendezvous.rank()), streams(streams), lobby(all.listener) {
    for (int peer : peers)
      if (!streams.has(peer)) {
        if (peer < self)
          attempts.push_back({peer});
        else
          awaited.insert(peer);
      }
  }

  void run(double seconds) {
    auto end = Clock::now() + std::chrono::milliseconds(int64_t(seconds * 1000));
    while (!attempts.empty() || !awaited.empty()) {
      if (Clock::now() > end)
        fail("%s", lateText(seconds).c_str());
      for (Attempt &each : attempts)
        if (!each.connection)
          begin(each);
      wait();
      lobby.serve([&](Guest &guest, const Frame &frame) { hear(guest, frame); });
      for (Attempt &each : attempts)
        if (each.connection)
          hear(each);
      attempts.erase(std::remove_if(attempts.begin(), attempts.end(),
                                    [&](const Attempt &each) { return streams.has(each.peer); }),
                     attempts.end());
    }
  }

private:
  std::string lateText(double seconds) const {
    std::string within = " within " + std::to_string(int64_t(seconds)) + " s";
    if (attempts.empty())
      return "rank " + std::to_string(*awaited.begin()) +
             " has not connected to this rank's port " +
             std::to_string(processes::portOf(all.listener)) + within;
    const Attempt &first = attempts.front();
    std::string tried;
    const Endpoint &to = all.endpoints[size_t(first.peer)];
    for (const std::string &address : to.addresses)
      tried += (tried.empty() ? "" : ", ") + address;
    return "cannot connect to rank " + std::to_string(first.peer) + " at port " +
           std::to_string(to.port) + " of " + tried + within + ": " + first.problem;
  }

  void begin(Attempt &attempt) {
    if (attempt.problem.size() && Clock::now() < attempt.since)
      return;
    const Endpoint &to = all.endpoints[size_t(attempt.peer)];
    const std::string &address = to.addresses[attempt.address % to.addresses.size()];
    Socket socket = processes::beginConnecting(address, to.port);
    if (!socket.isOpen()) {
      attempt.problem = std::strerror(errno);
      return again(attempt);
    }
    attempt.since = Clock::now();
    attempt.connection = std::make_unique<Connection>(std::move(socket));
    attempt.connection->send(
        {Greets, uint32_t(self), processes::pack({all.secret, std::to_string(attempt.peer)})});
    attempt.connection->flush();
  }

  /// Tries the next address soon.
  static void again(Attempt &attempt) {
    attempt.connection.reset();
    ++attempt.address;
    attempt.since = Clock::now() + std::chrono::milliseconds(50);
  }

  void wait() {
    std::vector<pollfd> waits;
    lobby.addTo(waits);
    for (const Attempt &each : attempts)
      if (each.connection)
        waits.push_back({each.connection->descriptor(),
                         short(each.connection->hasUnsent() ? POLLOUT : POLLIN), 0});
    poll(waits.data(), waits.size(), 50);
  }

  void hear(Guest &guest, const Frame &frame) {
    if (guest.rank < 0)
      return greet(guest, frame);
    if (frame.kind != Goes)
      fail("a stranger");
    awaited.erase(guest.rank);
    streams.add(guest.rank, guest.connection->release());
    guest.connection.reset();
  }

  void greet(Guest &guest, const Frame &frame) const {
    std::vector<std::string> fields = processes::unpack(frame.text, 2);
    if (frame.kind != Greets || fields[0] != all.secret || fields[1] != std::to_string(self) ||
        !awaited.count(int(frame.number)))
      fail("a stranger");
    guest.rank = int(frame.number);
    guest.connection->send({Accepts, uint32_t(self), all.secret});
    guest.connection->flush();
  }

  void hear(Attempt &attempt) {
    bool open = attempt.connection->flush();
    open = attempt.connection->receive() && open;
    std::optional<Frame> frame;
    attempt.problem = attempt.connection->error()       ? std::strerror(attempt.connection->error())
                      : attempt.connection->hasUnsent() ? "nobody answers there"
                                                        : "whoever listens there is not the rank";
    try {
      frame = attempt.connection->next();
    } catch (const Error &) {
      open = false;
    }
    if (frame && frame->kind == Accepts && frame->text == all.secret) {
      attempt.connection->send({Goes, uint32_t(self), ""});
      if (attempt.connection->flush() && !attempt.connection->hasUnsent()) {
        streams.add(attempt.peer, attempt.connection->release());
        attempt.connection.reset();
        return;
      }
    }
    if (frame || !open || Clock::now() > attempt.since + kAnswer)
      again(attempt);
  }

  const Connections &all;
  const int self;
  Streams &streams;
  std::vector<Attempt> attempts; ///< to lower ranks
  std::set<int> awaited;         ///< higher ranks
  processes::Lobby lobby;        ///< other ranks, or strangers
};

void Connections::connect(const std::set<int> &peers, Streams &streams, double seconds) {
  Connector(*this, peers, streams).run(seconds);
  rendezvous.barrier("connections"); // nothing is sent before, and nobody is asked after
}

} // namespace partita_rt
