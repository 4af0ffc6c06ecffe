// What ranks tell each other of themselves when they meet (joining.h).

#ifndef PARTITA_RT_PROCESSES_GREETING_H
#define PARTITA_RT_PROCESSES_GREETING_H

#include "processes/rendezvous.h"

namespace partita_rt::processes {

/// A rank's first message to rank 0.
struct Greeting {
  std::string run;
  int rank = 0, ranks = 0;
  Peer peer;
  std::string hostAndBoot; ///< host and boot, by which local ranks are counted
};
std::string textOf(const Greeting &greeting);
/// Throws Error for a malformed greeting.
Greeting greetingFrom(const std::string &text);
/// Returns this process's greeting; it listens on `port` for ranks that have lost rank 0.
Greeting greetingOf(const LaunchEnvironment &environment, int port);

/// All peers by rank, but for their names, which each process makes itself.
std::string textOf(const std::vector<Peer> &peers);
/// Returns them, in the same order. Throws Error unless the text is of `count` peers.
std::vector<Peer> peersFrom(const std::string &text, size_t count);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_GREETING_H
