// Sockets and frames (wire.h). A frame consists of its text's length, kind, number (all
// little-endian) and text.

#include "processes/wire.h"
#include "partita_rt/host_lookup.h"
#include "partita_rt/types.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace partita_rt::processes {

//===-- Sockets -----------------------------------------------------------------------------===//

Socket &Socket::operator=(Socket &&other) noexcept {
  if (this != &other) {
    close();
    descriptor = other.release();
  }
  return *this;
}

void Socket::close() {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

int Socket::release() {
  int result = descriptor;
  descriptor = -1;
  return result;
}

static void set(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

/// Detects a host that vanished silently after about a minute.
static void watchPeer(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

Socket listenOn(int port) {
  Socket listener(socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (listener.isOpen()) {
    set(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    set(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    address.sin6_port = htons(uint16_t(port));
    if (bind(listener.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0 &&
        listen(listener.get(), 4096) == 0)
      return listener;
    if (errno == EADDRINUSE || errno == EACCES)
      return Socket();
  }
  // The machine may have no IPv6.
  listener = Socket(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.isOpen())
    return listener;
  set(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  if (bind(listener.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0 &&
      listen(listener.get(), 4096) == 0)
    return listener;
  return Socket();
}

int portOf(const Socket &socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(socket.get(), reinterpret_cast<sockaddr *>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in &>(address).sin_port);
}

Socket acceptFrom(const Socket &listener) {
  Socket result(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (result.isOpen())
    watchPeer(result.get());
  return result;
}

/// Begins to connect to one address; `error`: 0, or why it cannot.
static Socket begin(const addrinfo &address, int &error) {
  Socket result(
      socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  bool begins =
      result.isOpen() &&
      (connect(result.get(), address.ai_addr, address.ai_addrlen) == 0 || errno == EINPROGRESS);
  error = begins ? 0 : errno;
  if (begins)
    watchPeer(result.get());
  return begins ? std::move(result) : Socket();
}

/// Connects to one address.
static Socket connectTo(const addrinfo &address, double seconds, std::string &problem) {
  int error = 0;
  Socket result = begin(address, error);
  if (result.isOpen()) {
    pollfd wait{result.get(), POLLOUT, 0};
    socklen_t length = sizeof(error);
    if (poll(&wait, 1, int(seconds * 1000)) <= 0)
      error = ETIMEDOUT;
    else
      getsockopt(result.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error != 0) {
    problem = std::strerror(error);
    return Socket();
  }
  return result;
}

Socket connectTo(const std::string &host, int port, double seconds, std::string &problem) {
  addrinfo hints{}, *addresses = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses);
  if (lookUpMayPass(error)) {
    problem = gai_strerror(error);
    return Socket();
  }
  if (error != 0)
    fail("%s: %s", host.c_str(), gai_strerror(error));
  Socket result;
  for (addrinfo *each = addresses; each && !result.isOpen(); each = each->ai_next)
    result = connectTo(*each, seconds, problem);
  freeaddrinfo(addresses);
  return result;
}

Socket beginConnecting(const std::string &address, int port) {
  addrinfo hints{}, *addresses = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &addresses) != 0)
    return Socket();
  int error = 0;
  Socket result = begin(*addresses, error);
  freeaddrinfo(addresses);
  errno = error;
  return result;
}

std::string problemOfHost(const std::string &host) {
  int error = lookUpHost(host);
  return error ? host + ": " + gai_strerror(error) : "";
}

bool isUnknown(const std::string &host) {
  int error = lookUpHost(host);
  return error && !lookUpMayPass(error);
}

bool isThisMachine(const std::string &host) {
  addrinfo hints{}, *addresses = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &addresses) != 0)
    return true;
  bool isOwn = false; // only a machine's own addresses can be bound
  for (addrinfo *each = addresses; each && !isOwn; each = each->ai_next) {
    Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, each->ai_protocol));
    isOwn = socket.isOpen() && bind(socket.get(), each->ai_addr, each->ai_addrlen) == 0;
  }
  freeaddrinfo(addresses);
  return isOwn;
}

std::string peerOf(int descriptor) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  char text[NI_MAXHOST] = "?";
  if (getpeername(descriptor, reinterpret_cast<sockaddr *>(&address), &length) == 0)
    getnameinfo(reinterpret_cast<sockaddr *>(&address), length, text, sizeof(text), nullptr, 0,
                NI_NUMERICHOST);
  return text;
}

//===-- Frames ------------------------------------------------------------------------------===//

static void appendNumber(std::string &text, uint32_t value) {
  for (int i = 0; i < 4; ++i)
    text.push_back(char(value >> (8 * i)));
}

static uint32_t numberAt(const std::string &text, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= uint32_t(uint8_t(text[at + i])) << (8 * i);
  return value;
}

static constexpr size_t kHeaderBytes = 9;

Connection::Connection(Socket connected) : socket(std::move(connected)) {}

Socket Connection::release() {
  if (taken < in.size() || hasUnsent())
    fail("a connection to %s is not at rest", peerOf(socket.get()).c_str());
  return std::move(socket);
}

void Connection::send(const Frame &frame) {
  if (frame.text.size() > kMostBytes)
    fail("a message of %zu bytes to another rank, at most %u are sent", frame.text.size(),
         kMostBytes);
  appendNumber(out, uint32_t(frame.text.size()));
  out.push_back(char(frame.kind));
  appendNumber(out, frame.number);
  out += frame.text;
}

bool Connection::onlyWaits() {
  if (errno == EAGAIN || errno == EWOULDBLOCK)
    return true;
  problem = errno;
  return false;
}

bool Connection::flush() {
  while (hasUnsent()) {
    ssize_t n = ::send(socket.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return onlyWaits();
    sent += size_t(n);
  }
  out.clear();
  sent = 0;
  return true;
}

bool Connection::receive() {
  char buffer[65536];
  for (;;) {
    ssize_t n = recv(socket.get(), buffer, sizeof(buffer), 0);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return onlyWaits();
    if (n == 0)
      return false;
    in.append(buffer, size_t(n));
    if (in.size() - taken > size_t(limit) + sizeof(buffer)) // the rest when this is read
      return true;
  }
}

std::optional<Frame> Connection::next() {
  if (in.size() - taken < kHeaderBytes)
    return std::nullopt;
  uint32_t length = numberAt(in, taken);
  if (length > limit)
    fail("a message of %u bytes from %s, at most %u are expected", length,
         peerOf(socket.get()).c_str(), limit);
  if (in.size() - taken < kHeaderBytes + length)
    return std::nullopt;
  Frame frame{uint8_t(in[taken + 4]), numberAt(in, taken + 5),
              in.substr(taken + kHeaderBytes, length)};
  taken += kHeaderBytes + length;
  if (taken == in.size()) {
    in.clear();
    taken = 0;
  }
  return frame;
}

std::string pack(const std::vector<std::string> &texts) {
  std::string result;
  for (const std::string &text : texts) {
    appendNumber(result, uint32_t(text.size()));
    result += text;
  }
  return result;
}

std::vector<std::string> unpack(const std::string &text, size_t count) {
  std::vector<std::string> texts;
  size_t at = 0;
  while (texts.size() < count && text.size() - at >= 4 &&
         numberAt(text, at) <= text.size() - at - 4) {
    texts.push_back(text.substr(at + 4, numberAt(text, at)));
    at += 4 + texts.back().size();
  }
  if (texts.size() != count || at != text.size())
    fail("received a malformed message from another rank");
  return texts;
}

} // namespace partita_rt::processes
