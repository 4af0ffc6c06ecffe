// How the ranks of a run find rank 0 (arrival.cpp), and how rank 0 identifies them (reception.cpp).

#ifndef PARTITA_RT_PROCESSES_JOINING_H
#define PARTITA_RT_PROCESSES_JOINING_H

#include "processes/greeting.h"
#include "processes/hub.h"

namespace partita_rt::processes {

/// All ranks by their numbers on the mesh (common/mesh/node_order.h), once all have arrived, and
/// connections: on rank 0 one to each other rank, on the others a single one to rank 0.
struct Joined {
  int rank = 0; ///< of this process
  std::vector<Peer> peers;
  std::vector<std::unique_ptr<Connection>> connections;
};

/// Which process prints a failure that all ranks share.
enum class Speaker : uint8_t {
  This,      ///< this one, and the others know
  Another,   ///< another one, which has told this one
  OneOfHost, ///< the first on this host to notice: processes do not know each other (host_speaker.h)
};
struct JoiningFailed {
  std::string message;
  Speaker speaker;
  std::function<void()> tell = {}; ///< tells the others, once it is printed; may be empty
};
/// Returns the name of the run's occasion for HostSpeaker.
std::string meetingOf(const LaunchEnvironment &environment);

/// What rank 0 does, and what the others do, until all ranks of the run are known. Wait at most this many
/// seconds. Throw JoiningFailed.
Joined receiveRanks(const LaunchEnvironment &environment, const Greeting &own, double seconds);
Joined joinRankZero(const LaunchEnvironment &environment, const Greeting &own, double seconds);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_JOINING_H
