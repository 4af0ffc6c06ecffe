// Names that only one process can hold (host_speaker.h).

#include "processes/host_speaker.h"
#include "partita_rt/fingerprint.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace partita_rt::processes {

namespace {

struct Address {
  sockaddr_un name{};
  socklen_t length;
  explicit Address(const std::string &occasion) {
    auto *bytes = reinterpret_cast<const unsigned char *>(occasion.data());
    int64_t size = int64_t(occasion.size());
    std::string text = "partita " + std::to_string(geteuid()) + " " +
                       fingerprintText(fingerprint(bytes, size, size));
    name.sun_family = AF_UNIX; // an abstract name begins with a zero
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&name); }
};

Socket unixSocket() {
  return Socket(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

} // namespace

HostSpeaker::HostSpeaker(const std::string &occasion) : name(unixSocket()) {
  Address address(occasion);
  if (name.isOpen() && bind(name.get(), address.get(), address.length) == 0)
    listen(name.get(), 1);
  else
    isFirst = errno != EADDRINUSE;
}

/// A silent process gives the other one time to print: launchers end all when one has ended.
void HostSpeaker::linger() const { usleep(isFirst ? 1'000'000 : 200'000); }

bool HostSpeaker::hasSpoken(const std::string &occasion) {
  Address address(occasion);
  Socket asks = unixSocket();
  // Connections are never accepted, so with many callers some find the queue full.
  return asks.isOpen() &&
         (connect(asks.get(), address.get(), address.length) == 0 || errno == EAGAIN);
}

} // namespace partita_rt::processes
