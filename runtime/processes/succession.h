// Chooses the rank that prints why a run ends if rank 0, which otherwise decides that (hub.h), has
// died or hangs.
//
// Every rank has a port of its own, which all know since they met. A rank that has lost rank 0 asks
// the ranks below it whether they are alive. If one answers, that one prints, or a rank below it;
// if none does, this rank is the lowest that is alive. It prints, and tells the ranks above it and
// rank 0.

#ifndef PARTITA_RT_PROCESSES_SUCCESSION_H
#define PARTITA_RT_PROCESSES_SUCCESSION_H

#include "processes/hub.h"
#include "processes/lobby.h"

#include <memory>
#include <poll.h>

namespace partita_rt::processes {

/// Returns a name that ranks of other starts do not know: a launcher without names for its starts gives each the
/// same `run`, but they have other processes and ports. The peers' names do not count.
std::string startName(const std::string &run, const std::vector<Peer> &peers);

/// This rank's port. `run`: the start's name, as below.
class OwnPort {
public:
  OwnPort(Socket listener, std::string run)
      : listener(std::move(listener)), run(std::move(run)), lobby(this->listener) {}
  OwnPort(const OwnPort &) = delete;
  OwnPort &operator=(const OwnPort &) = delete;
  void addTo(std::vector<pollfd> &waits) const { lobby.addTo(waits); }
  /// Answers ranks that ask. Returns the messages of ranks of this run: Lost or Over, with the
  /// message as text.
  std::vector<Frame> serve();

private:
  Socket listener;
  std::string run;
  Lobby lobby;
};

/// Is one of the lower ranks, which are all asked at once, alive? It then prints why all end: its own
/// reason, or `message`. Takes at most half a second.
bool anotherSpeaks(const std::vector<Peer> &peers, int rank, const std::string &run,
                   const std::string &message);
/// Tells the higher ranks that the reason has been printed; takes at most a second.
void tellOver(const std::vector<Peer> &peers, int rank, const std::string &run);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_SUCCESSION_H
