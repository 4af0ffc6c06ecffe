// Writes and reads greetings (greeting.h).

#include "processes/greeting.h"
#include "partita_rt/machine.h"
#include "partita_rt/types.h"
#include "processes/wire.h"

#include <unistd.h>

namespace partita_rt::processes {

static constexpr const char *kProtocol = "partita rendezvous 4";

static int numberFrom(const std::string &text) {
  size_t used = 0;
  int value = -1;
  try {
    value = std::stoi(text, &used);
  } catch (const std::exception &) {
  }
  if (used != text.size() || text.empty() || value < -1)
    fail("received a malformed message from another rank");
  return value;
}

std::string textOf(const Greeting &greeting) {
  return pack({kProtocol, greeting.run, std::to_string(greeting.rank),
               std::to_string(greeting.ranks), greeting.peer.host,
               std::to_string(greeting.peer.process), std::to_string(greeting.peer.localRank),
               std::to_string(greeting.peer.port), greeting.hostAndBoot});
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
  greeting.hostAndBoot = fields[8];
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
  greeting.hostAndBoot = greeting.peer.host + " " + bootId();
  return greeting;
}

std::string textOf(const std::vector<Peer> &peers) {
  std::vector<std::string> fields;
  for (const Peer &peer : peers)
    for (const std::string &field :
         {peer.host, std::to_string(peer.process), std::to_string(peer.localRank), peer.address,
          std::to_string(peer.port), std::to_string(peer.launcherNumber),
          std::to_string(int(peer.isBesideRankZero))})
      fields.push_back(field);
  return pack(fields);
}

std::vector<Peer> peersFrom(const std::string &text, size_t count) {
  std::vector<std::string> fields = unpack(text, 7 * count);
  std::vector<Peer> peers;
  for (size_t i = 0; i < fields.size(); i += 7)
    peers.push_back({fields[i], numberFrom(fields[i + 1]), numberFrom(fields[i + 2]), fields[i + 3],
                     numberFrom(fields[i + 4]), numberFrom(fields[i + 5]),
                     numberFrom(fields[i + 6]) == 1});
  return peers;
}

} // namespace partita_rt::processes
