// How ranks connect to each other once they have met. Each listens at a port of its own; of two that
// exchange messages the higher one connects to the lower one, at whichever of that one's addresses it
// can reach, and both must know the run's secret: who listens there may be anyone.

#ifndef PARTITA_RT_CPU_LINKS_SOCKETS_CONNECTIONS_H
#define PARTITA_RT_CPU_LINKS_SOCKETS_CONNECTIONS_H

#include "cpu/links/sockets/streams.h"
#include "processes/rendezvous.h"

#include <set>

namespace partita_rt {

class Connections {
public:
  /// All ranks make one together, which listens as long as it lives. `address`: rank 0's.
  explicit Connections(processes::Rendezvous &rendezvous, const std::string &address);

  /// Connects to these ranks, unless it has. They do so at the same time. Throws Error if one cannot
  /// be reached in this many seconds.
  void connect(const std::set<int> &peers, Streams &streams, double seconds);

private:
  class Connector;
  processes::Rendezvous &rendezvous;
  processes::Socket listener;
  std::string secret;
  struct Endpoint {
    int port;
    std::vector<std::string> addresses; ///< the most likely one first
  };
  std::vector<Endpoint> endpoints; ///< by rank
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_LINKS_SOCKETS_CONNECTIONS_H
