// Framed messages over TCP, for the rendezvous. Data from the network are untrusted: a frame's
// length is checked before it is used, and memory grows with what has arrived, not with what was
// announced.

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

/// A descriptor that its owner closes.
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
  /// Max frame length of a peer that has not identified itself.
  static constexpr uint32_t kGreetingBytes = 4096;
  static constexpr uint32_t kMostBytes = 1u << 28;

  explicit Connection(Socket socket);
  int descriptor() const { return socket.get(); }
  /// Gives the socket up. Throws Error if bytes have arrived that were not read.
  Socket release();
  void allowLongFrames() { limit = kMostBytes; }
  /// Queues a frame; flush sends as much as the network takes. Throws Error for one of more than
  /// kMostBytes.
  void send(const Frame &frame);
  bool hasUnsent() const { return sent < out.size(); }
  /// Sends queued bytes until none are left, or the network takes no more now. Returns false if the
  /// connection is broken.
  bool flush();
  /// Takes what has arrived, for next(). Returns false if the other end has closed, or the connection is
  /// broken; frames that came before are still there.
  bool receive();
  /// Why it is broken, if it is: an errno such as ETIMEDOUT. 0: it is not, or the other end has closed it.
  int error() const { return problem; }
  /// Returns the next complete frame. Throws Error for one that is longer than allowed.
  std::optional<Frame> next();

private:
  Socket socket;
  std::string in, out;
  size_t taken = 0, sent = 0; ///< bytes of `in` and `out`
  uint32_t limit = kGreetingBytes;
  int problem = 0;
  /// After a call that has failed: returns whether it would only have had to wait; else notes why, by errno.
  bool onlyWaits();
};

/// Listens on all addresses, IPv6 and IPv4. `port` 0 chooses any; portOf returns it. If the result
/// is not open, errno says why.
Socket listenOn(int port);
int portOf(const Socket &socket);
/// Accepts the next waiting connection; not open if there is none.
Socket acceptFrom(const Socket &listener);
/// Tries all addresses of the host. If the result is not open, `problem` says why. Throws Error for
/// a host without an address.
Socket connectTo(const std::string &host, int port, double seconds, std::string &problem);
/// Begins to connect to a numeric address, and does not wait: over a Connection of the result, frames are
/// sent once it is there. Not open if it cannot begin; then errno says why.
Socket beginConnecting(const std::string &address, int port);
/// Returns why a host has no address: "node7: Name or service not known"; "" if it has one.
std::string problemOfHost(const std::string &host);
/// Has the host no address for certain? A name server that does not answer now may the next time.
bool isUnknown(const std::string &host);
/// Returns true if one of the host's addresses belongs to this machine, or if the host has no address.
bool isThisMachine(const std::string &host);
/// Returns the numeric address of the connection's other end.
std::string peerOf(int descriptor);

/// Packs strings into one, each preceded by its length.
std::string pack(const std::vector<std::string> &texts);
/// Throws Error unless `text` is the result of packing `count` strings.
std::vector<std::string> unpack(const std::string &text, size_t count);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_WIRE_H
