// Who says why a run ends when rank 0, which else decides that (hub.h), has died or hangs.
//
// Every rank has a port of its own, which all know since they have met. A rank that has lost rank 0
// asks those below it whether they live: the first that answers will speak, or one below that; if
// none does this rank is the lowest that lives. It speaks, and tells the ranks above it and rank 0.

#ifndef PARTITA_RT_PROCESSES_SUCCESSION_H
#define PARTITA_RT_PROCESSES_SUCCESSION_H

#include "processes/hub.h"

#include <memory>
#include <poll.h>

namespace partita_rt::processes {

/// This rank's port.
class OwnPort {
public:
  OwnPort(Socket listener, std::string run) : listener(std::move(listener)), run(std::move(run)) {}
  void addTo(std::vector<pollfd> &waits) const;
  /// Answers those that ask. Returns what ranks of this run have said: Lost or Over, with the
  /// message as text.
  std::vector<Frame> serve();

private:
  struct Visitor {
    std::unique_ptr<Connection> connection;
    Clock::time_point came;
  };
  Socket listener;
  std::string run;
  std::vector<Visitor> visitors;
};

/// Does one of the ranks below live? It then says why all end: its own reason, or `message`.
bool anotherSpeaks(const std::vector<Peer> &peers, int rank, const std::string &run,
                   const std::string &message);
/// Tells the ranks above that it has been said why all end; takes at most two seconds.
void tellOver(const std::vector<Peer> &peers, int rank, const std::string &run);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_SUCCESSION_H
