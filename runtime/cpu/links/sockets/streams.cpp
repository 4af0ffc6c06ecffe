// Messages over TCP (streams.h).

#include "cpu/links/sockets/streams.h"
#include "common/start_marks.h"
#include "partita_rt/types.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace partita_rt {

/// Bytes that one call of move() reads from a peer, at most.
constexpr int64_t kReadBytes = 1 << 20;
/// After how many seconds a wait for a peer that is gone fails by itself: the rendezvous knows why it
/// went, and ends the process before.
constexpr std::chrono::seconds kReportPatience(10);

Streams::Streams(int ranks) : streams(size_t(ranks)), poll(epoll_create1(EPOLL_CLOEXEC)) {
  if (poll < 0)
    fail("connections to other ranks cannot be watched: %s", std::strerror(errno));
}

Streams::~Streams() { ::close(poll); }

void Streams::add(int peer, processes::Socket socket) {
  // A rank that computes for long reads nothing, and is not gone; the rendezvous finds those that are.
  int none = 0;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof(none));
  auto stream = std::make_unique<Stream>();
  stream->peer = peer;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = stream.get();
  if (epoll_ctl(poll, EPOLL_CTL_ADD, socket.get(), &event) != 0)
    fail("the connection to rank %d cannot be watched: %s", peer, std::strerror(errno));
  stream->socket = std::move(socket);
  open.push_back(stream.get());
  streams[size_t(peer)] = std::move(stream);
}

Streams::Stream &Streams::at(int peer) {
  if (!has(peer))
    fail("there is no connection to rank %d", peer);
  return *streams[size_t(peer)];
}

//===-- Sending -----------------------------------------------------------------------------===//

void Streams::queue(Stream &stream, const Header &header, Operation *operation) {
  bool wasIdle = stream.out.empty();
  stream.out.push_back({header, operation});
  if (wasIdle)
    flush(stream);
}

void Streams::send(Operation &operation, Purpose purpose, Sending how) {
  Stream &stream = at(operation.peer);
  Header header{Data, purpose.messenger, purpose.tag, 0, operation.bytes};
  bool announces =
      how == Sending::Synchronous || (how == Sending::Bulk && operation.bytes > kEagerBytes);
  if (!announces)
    return queue(stream, header, &operation);
  header.kind = Announced;
  header.number = ++stream.numbers;
  stream.announced[header.number] = &operation;
  queue(stream, header, nullptr);
}

void Streams::flush(Stream &stream) {
  while (!stream.out.empty() && !stream.closed) {
    Outgoing &first = stream.out.front();
    int64_t head = sizeof(Header), bytes = first.operation ? first.operation->bytes : 0;
    iovec parts[2];
    size_t count = 0;
    if (first.sent < head)
      parts[count++] = {reinterpret_cast<char *>(&first.header) + first.sent,
                        size_t(head - first.sent)};
    int64_t sentData = std::max<int64_t>(0, first.sent - head);
    if (bytes > sentData)
      parts[count++] = {first.operation->data + sentData, size_t(bytes - sentData)};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    ssize_t n = sendmsg(stream.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK)
        close(stream, std::strerror(errno));
      return;
    }
    first.sent += n;
    if (first.sent < head + bytes)
      continue;
    if (first.operation)
      first.operation->done = true;
    stream.out.pop_front();
  }
}

//===-- Receiving ---------------------------------------------------------------------------===//

/// Asks for the data of an announced message.
void Streams::ask(Stream &stream, const Header &header, Operation &operation) {
  stream.asked[header.number] = &operation;
  queue(stream, {Asked, header.messenger, header.tag, header.number, 0}, nullptr);
}

static void checkBytes(int64_t sent, const Operation &operation) {
  if (sent != operation.bytes)
    fail("rank %d has sent a message of %lld bytes, %lld are expected", operation.peer,
         (long long)sent, (long long)operation.bytes);
}

void Streams::receive(Operation &operation, Purpose purpose) {
  Stream &stream = at(operation.peer);
  auto &earlies = stream.earlies[purpose];
  if (earlies.empty())
    return stream.receives[purpose].push_back(&operation);
  std::shared_ptr<Early> early = earlies.front();
  earlies.pop_front();
  checkBytes(early->header.bytes, operation);
  if (early->header.kind == Announced)
    return ask(stream, early->header, operation);
  if (!early->complete) {
    early->wanted = &operation;
    return;
  }
  std::copy(early->data.begin(), early->data.end(), operation.data);
  operation.done = true;
}

/// A header has arrived: decides where its data go.
void Streams::begin(Stream &stream) {
  const Header &header = stream.header;
  Purpose purpose{header.messenger, header.tag};
  stream.missing = 0;
  auto bad = [&] { fail("rank %d has sent a malformed message", stream.peer); };
  if (header.bytes < 0)
    bad();
  switch (header.kind) {
  case Asked: {
    auto found = stream.announced.find(header.number);
    if (found == stream.announced.end())
      bad();
    Operation *operation = found->second;
    stream.announced.erase(found);
    return queue(stream, {AskedData, header.messenger, header.tag, header.number, operation->bytes},
                 operation);
  }
  case AskedData: {
    auto found = stream.asked.find(header.number);
    if (found == stream.asked.end())
      bad();
    stream.into = found->second;
    stream.asked.erase(found);
    break;
  }
  case Data:
  case Announced: {
    auto &receives = stream.receives[purpose];
    if (receives.empty()) {
      stream.early = std::make_shared<Early>(Early{header, {}});
      stream.earlies[purpose].push_back(stream.early);
      if (header.kind == Announced)
        return stream.early.reset();
      stream.early->data.resize(size_t(header.bytes));
      stream.at = stream.early->data.data();
      stream.missing = header.bytes;
      return;
    }
    Operation *operation = receives.front();
    receives.pop_front();
    if (header.kind == Announced) {
      checkBytes(header.bytes, *operation);
      return ask(stream, header, *operation);
    }
    stream.into = operation;
    break;
  }
  default:
    bad();
  }
  checkBytes(header.bytes, *stream.into);
  stream.at = stream.into->data;
  stream.missing = header.bytes;
}

/// All data of a message have arrived.
void Streams::finish(Stream &stream) {
  if (stream.into)
    stream.into->done = true;
  if (Early *early = stream.early.get()) {
    early->complete = true;
    if (early->wanted) {
      std::copy(early->data.begin(), early->data.end(), early->wanted->data);
      early->wanted->done = true;
    }
  }
  stream.into = nullptr;
  stream.early.reset();
  stream.headerBytes = 0;
}

void Streams::read(Stream &stream) {
  for (int64_t budget = kReadBytes; budget > 0 && !stream.closed;) {
    bool inHeader = stream.headerBytes < int64_t(sizeof(Header));
    char *to = inHeader ? reinterpret_cast<char *>(&stream.header) + stream.headerBytes : stream.at;
    int64_t most =
        inHeader ? int64_t(sizeof(Header)) - stream.headerBytes : std::min(stream.missing, budget);
    ssize_t n = recv(stream.socket.get(), to, size_t(most), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    if (n <= 0)
      return close(stream, n == 0 ? "it was closed" : std::strerror(errno));
    budget -= n;
    if (inHeader) {
      stream.headerBytes += n;
      if (stream.headerBytes < int64_t(sizeof(Header)))
        continue;
      begin(stream);
    } else {
      stream.at += n;
      stream.missing -= n;
    }
    if (stream.missing == 0)
      finish(stream);
  }
}

//===-- Progress ----------------------------------------------------------------------------===//

void Streams::close(Stream &stream, const std::string &problem) {
  stream.closed = true;
  stream.problem = problem;
  stream.closedAt = std::chrono::steady_clock::now();
  stream.socket.close(); // epoll forgets it
}

bool Streams::isAwaited(const Stream &stream) {
  auto any = [](const auto &queues) {
    return std::any_of(queues.begin(), queues.end(),
                       [](const auto &each) { return !each.second.empty(); });
  };
  return stream.into || (stream.early && stream.early->wanted) || !stream.out.empty() ||
         !stream.announced.empty() || !stream.asked.empty() || any(stream.receives);
}

void Streams::checkClosed(const Stream &stream) const {
  if (!isAwaited(stream) || std::chrono::steady_clock::now() <= stream.closedAt + kReportPatience)
    return;
  std::string text =
      "the connection to rank " + std::to_string(stream.peer) + " is gone: " + stream.problem;
  noteLostRank(text.c_str());
  fail("%s", text.c_str());
}

void Streams::move() {
  epoll_event events[64];
  int count = epoll_wait(poll, events, 64, 0);
  for (int i = 0; i < count; ++i)
    read(*static_cast<Stream *>(events[i].data.ptr));
  for (Stream *stream : open) {
    if (stream->closed)
      checkClosed(*stream);
    else if (!stream->out.empty())
      flush(*stream);
  }
}

//===-- Messengers --------------------------------------------------------------------------===//

namespace {

class SocketExchange final : public Exchange {
public:
  SocketExchange(Streams &streams, uint32_t number, const std::vector<int> &members)
      : streams(streams), number(number), members(members) {}

  void send(const void *data, int64_t bytes, int to, int tag, Sending how) override {
    streams.send(add(const_cast<void *>(data), bytes, to), {number, uint32_t(tag)}, how);
  }
  void receive(void *data, int64_t bytes, int from, int tag) override {
    streams.receive(add(data, bytes, from), {number, uint32_t(tag)});
  }
  bool test() override {
    auto isDone = [](const Entry &each) { return each.operation.done; };
    if (!std::all_of(entries.begin(), entries.end(), isDone)) {
      streams.move();
      if (!std::all_of(entries.begin(), entries.end(), isDone))
        return false;
    }
    entries.clear();
    return true;
  }
  void addPeers(std::set<int> &peers) const override {
    for (const Entry &each : entries)
      if (!each.operation.done)
        peers.insert(each.member);
  }

private:
  struct Entry {
    Operation operation;
    int member;
  };
  Operation &add(void *data, int64_t bytes, int member) {
    entries.push_back({{static_cast<char *>(data), bytes, members[size_t(member)]}, member});
    return entries.back().operation;
  }

  Streams &streams;
  uint32_t number;
  const std::vector<int> &members;
  std::deque<Entry> entries;
};

} // namespace

std::unique_ptr<Exchange> SocketMessenger::exchange() {
  return std::make_unique<SocketExchange>(streams, number, members);
}

} // namespace partita_rt
