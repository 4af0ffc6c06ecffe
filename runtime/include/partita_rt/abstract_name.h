// Sockets with an abstract name of Unix (unix(7)), which one process of a network namespace can have: the kernel drops it with
// the process, and no file is left. The compiler includes this header, so it includes no other header of the runtime.

#ifndef PARTITA_RT_ABSTRACT_NAME_H
#define PARTITA_RT_ABSTRACT_NAME_H

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace partita_rt {

/// Makes a socket, and calls `what`, bind or connect, with this abstract name, of at most 107 bytes. Neither waits. Returns the
/// socket; or -1 and sets errno: EADDRINUSE if another process has the name, EAGAIN if it has but many are connecting to it.
inline int socketWithName(int (*what)(int, const sockaddr *, socklen_t), const std::string &name) {
  int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (handle < 0)
    return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX; // an abstract name begins with a zero
  size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (what(handle, reinterpret_cast<sockaddr *>(&address), size) == 0)
    return handle;
  int error = errno;
  close(handle);
  errno = error;
  return -1;
}

} // namespace partita_rt

#endif // PARTITA_RT_ABSTRACT_NAME_H
