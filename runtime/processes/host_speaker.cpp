// Names that only one process can hold (host_speaker.h).

#include "processes/host_speaker.h"
#include "partita_rt/abstract_name.h"
#include "partita_rt/fingerprint.h"

#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

namespace partita_rt::processes {

static std::string nameFor(const std::string &occasion) {
  auto *bytes = reinterpret_cast<const unsigned char *>(occasion.data());
  int64_t size = int64_t(occasion.size());
  return "partita " + std::to_string(geteuid()) + " " +
         fingerprintText(fingerprint(bytes, size, size));
}

HostSpeaker::HostSpeaker(const std::string &occasion)
    : name(socketWithName(bind, nameFor(occasion))) {
  if (name.isOpen())
    listen(name.get(), 1);
  else
    isFirst = errno != EADDRINUSE;
}

/// A silent process gives the other one time to print: launchers end all when one has ended.
void HostSpeaker::linger() const { usleep(isFirst ? 1'000'000 : 200'000); }

bool HostSpeaker::hasSpoken(const std::string &occasion) {
  Socket asks(socketWithName(connect, nameFor(occasion)));
  // Connections are never accepted, so with many callers some find the queue full.
  return asks.isOpen() || errno == EAGAIN;
}

} // namespace partita_rt::processes
