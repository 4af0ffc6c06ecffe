// Who has connected to a port of this process, and is not yet known: ranks of the run, and strangers,
// which get neither memory nor time.

#ifndef PARTITA_RT_PROCESSES_LOBBY_H
#define PARTITA_RT_PROCESSES_LOBBY_H

#include "processes/wire.h"

#include <chrono>
#include <functional>
#include <memory>
#include <poll.h>

namespace partita_rt::processes {

class Lobby {
public:
  struct Guest {
    std::unique_ptr<Connection> connection; ///< whoever takes it admits the guest
    std::chrono::steady_clock::time_point came = std::chrono::steady_clock::now();
    int rank = -1;          ///< which it has said it is
    bool isRefused = false; ///< hears why, and closes its end when it has
  };
  /// Takes a guest's frame. An Error that it throws refuses the guest.
  using Hear = std::function<void(Guest &guest, const Frame &frame)>;
  /// Sends a guest the reason; without this, its connection is closed.
  using Refuse = std::function<void(Guest &guest, const std::string &reason)>;

  /// `listener` must live as long as this; it may still be closed.
  explicit Lobby(const Socket &listener) : listener(listener) {}
  void addTo(std::vector<pollfd> &waits) const;
  /// Accepts who has come, hears all guests, and drops those that have left or stay too long.
  void serve(const Hear &hear, const Refuse &refuse = nullptr);

private:
  static void serve(Guest &guest, const Hear &hear, const Refuse &refuse);

  const Socket &listener;
  std::vector<Guest> guests;
};

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_LOBBY_H
