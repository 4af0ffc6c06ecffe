// Admits connections (lobby.h).

#include "processes/lobby.h"
#include "partita_rt/types.h"

#include <algorithm>

namespace partita_rt::processes {

static constexpr size_t kMostGuests = 4096;
static constexpr std::chrono::seconds kLongestStay(10);

void Lobby::addTo(std::vector<pollfd> &waits) const {
  if (listener.isOpen())
    waits.push_back({listener.get(), POLLIN, 0});
  for (const Guest &guest : guests)
    waits.push_back({guest.connection->descriptor(), POLLIN, 0});
}

void Lobby::serve(Guest &guest, const Hear &hear, const Refuse &refuse) {
  bool stays =
      guest.connection->receive() && std::chrono::steady_clock::now() < guest.came + kLongestStay;
  try {
    while (guest.connection && !guest.isRefused) {
      std::optional<Frame> frame = guest.connection->next();
      if (!frame)
        break;
      hear(guest, *frame);
    }
    stays = stays && guest.connection && guest.connection->flush();
  } catch (const Error &error) { // a stranger, or a rank with something wrong
    if (refuse)
      refuse(guest, error.what());
    guest.isRefused = true;
    stays = stays && refuse;
  }
  if (!stays)
    guest.connection.reset();
}

void Lobby::serve(const Hear &hear, const Refuse &refuse) {
  while (listener.isOpen() && guests.size() < kMostGuests) {
    Socket socket = acceptFrom(listener);
    if (!socket.isOpen())
      break;
    guests.push_back({std::make_unique<Connection>(std::move(socket))});
  }
  for (Guest &guest : guests)
    serve(guest, hear, refuse);
  guests.erase(std::remove_if(guests.begin(), guests.end(),
                              [](const Guest &each) { return !each.connection; }),
               guests.end());
}

} // namespace partita_rt::processes
