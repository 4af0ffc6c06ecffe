// How the ranks of a run find rank 0, and how rank 0 identifies them (rendezvous.h).

#ifndef PARTITA_RT_PROCESSES_JOINING_H
#define PARTITA_RT_PROCESSES_JOINING_H

#include "processes/hub.h"

namespace partita_rt::processes {

/// A rank's first message to rank 0.
struct Greeting {
  std::string run;
  int rank = 0, ranks = 0;
  Peer peer;
  std::string machine; ///< host and boot, by which local ranks are counted
};
std::string textOf(const Greeting &greeting);
/// Throws Error for a malformed greeting.
Greeting greetingFrom(const std::string &text);
/// Returns this process's greeting; it listens on `port` for ranks that have lost rank 0.
Greeting greetingOf(const LaunchEnvironment &environment, int port);

std::string textOf(const std::vector<Peer> &peers);
std::vector<Peer> peersFrom(const std::string &text, size_t count);

/// All ranks by number, once all have arrived, and connections: on rank 0 one to each other rank,
/// on the others a single one to rank 0.
struct Joined {
  std::vector<Peer> peers;
  std::vector<std::unique_ptr<Connection>> connections;
};

/// Which process prints a failure that all ranks share.
enum class Speaker : uint8_t {
  This,    ///< this one, and the others know
  Another, ///< another one, which has told this one
  First,   ///< the first on this machine to notice: processes do not know each other (first_here.h)
};
struct JoiningFailed {
  std::string message;
  Speaker speaker;
  std::function<void()> tell = {}; ///< tells the others, once it is printed; may be empty
};
/// Returns the name of the run's occasion for FirstHere.
std::string meetingOf(const LaunchEnvironment &environment);

/// Waits at most this many seconds. Throws JoiningFailed.
Joined joinAsFirst(const LaunchEnvironment &environment, const Greeting &own, double seconds);
Joined joinFirst(const LaunchEnvironment &environment, const Greeting &own, double seconds);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_JOINING_H
