// Heartbeats between MPI processes that share no memory: of several nodes.
//
// MPI itself cannot carry them: it moves messages while the rank calls it, and only the rank's
// thread may (MPI_THREAD_FUNNELED). They are datagrams: nothing to connect or to take down, no call
// that waits, and a lost one is followed by the next. Each process sends its own to a few ranks of
// different nodes, the watching ones, so that rank 0 may stop like any other. A rank from which none
// has ever arrived, behind a firewall, is not watched across nodes.

#ifndef PARTITA_RT_CPU_WATCH_UDP_HEARTBEATS_H
#define PARTITA_RT_CPU_WATCH_UDP_HEARTBEATS_H

#include "common/watch/rank_position.h"

#include <functional>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <vector>

namespace partita_rt {

class UdpHeartbeats {
public:
  /// All processes call it together. `nodes`: by rank, the lowest rank of its node. `gather` returns
  /// all processes' texts.
  using Gather = std::function<std::vector<std::string>(const std::string &mine)>;
  UdpHeartbeats(int self, const std::vector<int> &nodes, const Gather &gather);
  ~UdpHeartbeats();
  UdpHeartbeats(const UdpHeartbeats &) = delete;
  UdpHeartbeats &operator=(const UdpHeartbeats &) = delete;

  /// Does this process watch those of other nodes?
  bool watches() const;
  /// If several nodes find the same, that with the lowest turn reports it: 0, 1, ...
  int turn() const { return turnOf(self); }
  /// Waits for a datagram, for at most so long.
  void wait(double seconds) const;
  /// Sends what the rank publishes to the watching ranks of other nodes.
  void send(const RankPosition &own);
  /// What other nodes' ranks have said of the end of the run.
  struct Heard {
    bool ends = false; ///< one has printed why
    /// One is about to; its node's turn, the lowest.
    std::optional<int> claim;
  };
  /// Takes what has arrived; positions go into those of other nodes' ranks.
  Heard receive(const std::vector<RankPosition *> &positions);
  /// Returns the lowest ranks of other nodes from which no datagram has arrived, such as behind a firewall.
  std::vector<int> unheardNodes() const;
  /// Tells all ranks of other nodes that this one is about to print why the run ends, or has.
  void tellClaim() { tell(Kind::Claim); }
  void tellEnd() { tell(Kind::End); }

private:
  /// Where a process can be reached: IPv4 as IPv6.
  struct Endpoint {
    static constexpr int kMost = 16;
    in6_addr addresses[kMost];
    int32_t count = 0;
    uint16_t port = 0; ///< 0: nowhere
    uint64_t run = 0;  ///< a random number; rank 0's is the run's
  };
  enum class Kind : int32_t { Position, Claim, End };
  Endpoint open();
  int turnOf(int rank) const;
  void tell(Kind kind);
  void sendTo(int rank, const std::string &datagram);

  int self, family = AF_INET6, socket = -1;
  uint64_t run = 0; ///< strangers do not know it
  std::vector<int> nodes, watching;
  std::vector<bool> isHeard; ///< by the lowest rank of a node: has a datagram arrived from it?
  std::vector<Endpoint> endpoints;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_WATCH_UDP_HEARTBEATS_H
