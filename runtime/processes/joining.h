// How the ranks of a run find rank 0, and how it knows them (rendezvous.h).

#ifndef PARTITA_RT_PROCESSES_JOINING_H
#define PARTITA_RT_PROCESSES_JOINING_H

#include "processes/hub.h"

namespace partita_rt::processes {

/// What a rank says when it comes.
struct Greeting {
  std::string run;
  int rank = 0, ranks = 0;
  Peer peer;
  std::string machine; ///< host and boot: whose ranks are counted together
};
std::string textOf(const Greeting &greeting);
/// Throws Error for what is none.
Greeting greetingFrom(const std::string &text);
/// This process's; `port` is where it listens for those that have lost rank 0.
Greeting greetingOf(const LaunchEnvironment &environment, int port);

std::string textOf(const std::vector<Peer> &peers);
std::vector<Peer> peersFrom(const std::string &text, size_t count);

/// All ranks as they are known when all have come: by rank, and on rank 0 a connection to each
/// other one, on the others one, to rank 0.
struct Joined {
  std::vector<Peer> peers;
  std::vector<std::unique_ptr<Connection>> connections;
};

/// All ranks fail for one reason. Who says it?
enum class Speaker : uint8_t {
  This,    ///< it has told the others that it does
  Another, ///< which has told this one
  First,   ///< of those on this machine that notice it: nobody knows the others (first_here.h)
};
struct JoiningFailed {
  std::string message;
  Speaker speaker;
};
/// What names the run's occasion of FirstHere.
std::string meetingOf(const LaunchEnvironment &environment);

/// Waits at most so many seconds. Throws JoiningFailed.
Joined joinAsFirst(const LaunchEnvironment &environment, const Greeting &own, double seconds);
Joined joinFirst(const LaunchEnvironment &environment, const Greeting &own, double seconds);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_JOINING_H
