// Messages over TCP: a connection to each peer, in both directions, shared by all messengers of the
// process. No thread: bytes move while move() is called.
//
// A message is a header and its data. Data that arrive before their receive has started are kept, so
// nothing that comes behind them has to wait; a sender of many or large ones announces them instead
// and sends the data when the receiver has asked for them. What no receive has asked for when the object is
// destroyed is dropped, without an error: the channels' marks find messages too many.

#ifndef PARTITA_RT_CPU_LINKS_SOCKETS_STREAMS_H
#define PARTITA_RT_CPU_LINKS_SOCKETS_STREAMS_H

#include "cpu/groups/messenger.h"
#include "processes/wire.h"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace partita_rt {

/// A send or a receive; its address, and the memory, must not change until it is done.
struct Operation {
  char *data;
  int64_t bytes; ///< of the message: both ends say the same, which receive() checks
  int peer;      ///< a rank
  bool done = false;
};

/// What a message is for; messages of one purpose arrive in order.
struct Purpose {
  uint32_t messenger, tag;
  bool operator<(const Purpose &other) const {
    return messenger != other.messenger ? messenger < other.messenger : tag < other.tag;
  }
};

/// One object per process, used by one thread: none of its functions waits, and none may be called while
/// another one runs. Whoever waits for an operation calls move() until it is `done`. Errors are thrown as
/// Error and end the run; operations that are pending then are never done.
class Streams {
public:
  /// Bulk messages of more than this are announced.
  static constexpr int64_t kEagerBytes = 64 << 10;

  /// `ranks`: of the run.
  explicit Streams(int ranks);
  ~Streams();
  Streams(const Streams &) = delete;
  Streams &operator=(const Streams &) = delete;

  /// Takes a connection to a rank, over which nothing has been sent.
  void add(int peer, processes::Socket socket);
  bool has(int peer) const { return streams[size_t(peer)] != nullptr; }

  /// Start a message to or from a rank to which there is a connection. Those of one purpose are matched in
  /// the order in which each end has started them.
  void send(Operation &operation, Purpose purpose, Sending how);
  void receive(Operation &operation, Purpose purpose);
  /// Moves what can move without waiting. Throws Error if a peer has sent what it should not, or has
  /// been gone for longer than it takes to report why.
  void move();

private:
  enum Kind : uint32_t { Data = 1, Announced, Asked, AskedData };
  struct Header {
    uint32_t kind, messenger, tag, number;
    int64_t bytes;
  };
  struct Outgoing {
    Header header;
    Operation *operation; ///< null: no data
    int64_t sent = 0;     ///< bytes of both
  };
  /// A message that has begun to arrive, or was announced, before its receive started.
  struct Early {
    Header header;
    std::vector<char> data;
    Operation *wanted = nullptr; ///< the receive has started in between
    bool complete = false;
  };
  struct Stream {
    int peer;
    processes::Socket socket;
    std::deque<Outgoing> out;
    Header header;           ///< of the message that arrives
    int64_t headerBytes = 0; ///< that have arrived
    char *at = nullptr;      ///< where its data go
    int64_t missing = 0;
    Operation *into = nullptr; ///< the receive that it completes; else:
    std::shared_ptr<Early> early;
    std::map<Purpose, std::deque<Operation *>> receives;
    std::map<Purpose, std::deque<std::shared_ptr<Early>>> earlies;
    std::map<uint32_t, Operation *> announced, asked; ///< by number: to send, to receive
    uint32_t numbers = 0;
    bool closed = false;
    std::string problem;
    std::chrono::steady_clock::time_point closedAt;
  };
  Stream &at(int peer);
  static void queue(Stream &stream, const Header &header, Operation *operation);
  static void flush(Stream &stream);
  static void read(Stream &stream);
  static void begin(Stream &stream);
  static void finish(Stream &stream);
  static void ask(Stream &stream, const Header &header, Operation &operation);
  static void close(Stream &stream, const std::string &problem);
  static bool isAwaited(const Stream &stream);
  void checkClosed(const Stream &stream) const;

  std::vector<std::unique_ptr<Stream>> streams; ///< by rank
  std::vector<Stream *> open;
  int poll = -1; ///< epoll's descriptor
};

/// Messages of some of the ranks.
class SocketMessenger final : public Messenger {
public:
  /// `number`: the messenger's, the same on all members.
  SocketMessenger(Streams &streams, uint32_t number, std::vector<int> members)
      : streams(streams), number(number), members(std::move(members)) {}
  std::unique_ptr<Exchange> exchange() override;

private:
  Streams &streams;
  uint32_t number;
  std::vector<int> members; ///< ranks
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_LINKS_SOCKETS_STREAMS_H
