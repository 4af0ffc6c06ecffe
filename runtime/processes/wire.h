// Framed messages over TCP, for the rendezvous. What comes from the network is untrusted: a frame's
// length is checked before it is believed, and memory grows with what has arrived, not with what
// was announced.

#ifndef PARTITA_RT_PROCESSES_WIRE_H
#define PARTITA_RT_PROCESSES_WIRE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace partita_rt::processes {

struct Frame {
  uint8_t kind = 0;
  uint32_t number = 0;
  std::string text;
};

/// A descriptor that is closed with its owner.
class Socket {
public:
  explicit Socket(int descriptor = -1) : descriptor(descriptor) {}
  Socket(Socket &&other) noexcept : descriptor(other.release()) {}
  Socket &operator=(Socket &&other) noexcept;
  ~Socket() { close(); }
  int get() const { return descriptor; }
  bool isOpen() const { return descriptor >= 0; }
  void close();
  int release();

private:
  int descriptor;
};

/// One end of a TCP connection; never blocks.
class Connection {
public:
  /// A peer that has not said who it is may send no frame longer than this.
  static constexpr uint32_t kGreetingBytes = 4096;
  static constexpr uint32_t kMostBytes = 1u << 28;

  explicit Connection(Socket socket);
  int descriptor() const { return socket.get(); }
  void allowLongFrames() { limit = kMostBytes; }
  /// Queues a frame; flush sends what the network takes.
  void send(const Frame &frame);
  bool hasUnsent() const { return sent < out.size(); }
  /// False: the connection is broken.
  bool flush();
  /// Takes what has arrived. False: the other end has closed, or the connection is broken.
  bool receive();
  /// The next complete frame. Throws Error for one that is longer than allowed.
  std::optional<Frame> next();

private:
  Socket socket;
  std::string in, out;
  size_t taken = 0, sent = 0; ///< of `in`, of `out`
  uint32_t limit = kGreetingBytes;
};

/// Listens on all addresses, IPv6 and IPv4. `port` 0: any, which portOf says. Not open: errno says
/// why.
Socket listenOn(int port);
int portOf(const Socket &socket);
/// The next connection that waits to be accepted; not open: none does.
Socket acceptFrom(const Socket &listener);
/// Tries all addresses of the host. Not open: `problem` says why. Throws Error for a host that has
/// no address.
Socket connectTo(const std::string &host, int port, double seconds, std::string &problem);
/// The numeric address of the connection's other end.
std::string peerOf(int descriptor);

/// Strings as one, each with its length before it.
std::string pack(const std::vector<std::string> &texts);
/// Throws Error unless `text` is what pack makes of so many.
std::vector<std::string> unpack(const std::string &text, size_t count);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_WIRE_H
