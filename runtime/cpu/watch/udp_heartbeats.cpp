// Datagrams between processes (udp_heartbeats.h).

#include "cpu/watch/udp_heartbeats.h"
#include "processes/addresses.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <random>
#include <set>
#include <sys/socket.h>
#include <unistd.h>

namespace partita_rt {

/// Ranks, each of another node, that learn of all others.
constexpr size_t kWatching = 3;

namespace {

/// The start of a datagram; a rank's image may follow.
struct Head {
  uint64_t run;
  int32_t rank, kind;
};

} // namespace

/// Binds the socket to any port. Without one, this process neither sends nor hears.
UdpHeartbeats::Endpoint UdpHeartbeats::open() {
  Endpoint own{};
  for (int each : {AF_INET6, AF_INET}) {
    socket = ::socket(each, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0)
      continue;
    family = each;
    int off = 0;
    if (family == AF_INET6)
      setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    sockaddr_storage any{};
    any.ss_family = sa_family_t(family);
    socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (bind(socket, reinterpret_cast<sockaddr *>(&any), size) == 0 &&
        getsockname(socket, reinterpret_cast<sockaddr *>(&any), &size) == 0) {
      own.port = family == AF_INET6 ? reinterpret_cast<sockaddr_in6 *>(&any)->sin6_port
                                    : reinterpret_cast<sockaddr_in *>(&any)->sin_port;
      break;
    }
    close(socket);
    socket = -1;
  }
  for (const in6_addr &address : processes::ownAddresses(Endpoint::kMost))
    own.addresses[own.count++] = address;
  return own;
}

UdpHeartbeats::UdpHeartbeats(int self, const std::vector<int> &nodes, const Gather &gather)
    : self(self), nodes(nodes), isHeard(nodes.size()) {
  Endpoint own = open();
  std::random_device random;
  own.run = uint64_t(random()) << 32 | random();
  for (const std::string &each :
       gather(std::string(reinterpret_cast<const char *>(&own), sizeof(own)))) {
    endpoints.emplace_back();
    std::memcpy(&endpoints.back(), each.data(), std::min(each.size(), sizeof(Endpoint)));
  }
  run = endpoints[0].run;
  std::set<int> firsts(nodes.begin(), nodes.end());
  for (int rank : firsts)
    if (watching.size() < kWatching)
      watching.push_back(rank);
}

UdpHeartbeats::~UdpHeartbeats() {
  if (socket >= 0)
    close(socket);
}

bool UdpHeartbeats::watches() const {
  return std::find(watching.begin(), watching.end(), self) != watching.end();
}

int UdpHeartbeats::turnOf(int rank) const {
  return int(std::find(watching.begin(), watching.end(), nodes[size_t(rank)]) - watching.begin());
}

void UdpHeartbeats::wait(double seconds) const {
  pollfd wait{socket, POLLIN, 0};
  poll(&wait, socket >= 0 ? 1 : 0, std::max(int(seconds * 1000), 1));
}

void UdpHeartbeats::sendTo(int rank, const std::string &datagram) {
  const Endpoint &to = endpoints[size_t(rank)];
  for (int i = 0; socket >= 0 && to.port && i < to.count; ++i) {
    sockaddr_in6 six{};
    sockaddr_in four{};
    bool isFour = IN6_IS_ADDR_V4MAPPED(&to.addresses[i]);
    if (family == AF_INET && !isFour)
      continue;
    six.sin6_family = AF_INET6;
    six.sin6_port = four.sin_port = to.port;
    six.sin6_addr = to.addresses[i];
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, to.addresses[i].s6_addr + 12, sizeof(four.sin_addr));
    const void *address = family == AF_INET ? static_cast<void *>(&four) : &six;
    (void)!sendto(socket, datagram.data(), datagram.size(), 0,
                  static_cast<const sockaddr *>(address),
                  family == AF_INET ? sizeof(four) : sizeof(six)); // the next one may arrive
  }
}

static std::string datagram(const Head &head, const std::string &image) {
  return std::string(reinterpret_cast<const char *>(&head), sizeof(head)) + image;
}

void UdpHeartbeats::send(const RankPosition &own) {
  std::string text = datagram({run, self, int32_t(Kind::Position)}, imageOf(own));
  for (int rank : watching)
    if (nodes[size_t(rank)] != nodes[size_t(self)])
      sendTo(rank, text);
}

UdpHeartbeats::Heard UdpHeartbeats::receive(const std::vector<RankPosition *> &positions) {
  Heard heard;
  char bytes[2048];
  for (ssize_t n; socket >= 0 && (n = recv(socket, bytes, sizeof(bytes), 0)) >= 0;) {
    Head head;
    if (size_t(n) < sizeof(head))
      continue;
    std::memcpy(&head, bytes, sizeof(head));
    bool isOfTheRun = head.run == run && head.rank >= 0 && size_t(head.rank) < nodes.size() &&
                      nodes[size_t(head.rank)] != nodes[size_t(self)];
    if (!isOfTheRun)
      continue;
    isHeard[size_t(nodes[size_t(head.rank)])] = true;
    heard.ends |= head.kind == int32_t(Kind::End);
    if (int turn = turnOf(head.rank);
        head.kind == int32_t(Kind::Claim) && turn < heard.claim.value_or(turn + 1))
      heard.claim = turn;
    if (RankPosition *position = positions[size_t(head.rank)];
        position && head.kind == int32_t(Kind::Position))
      try {
        readImage(*position, std::string(bytes + sizeof(head), size_t(n) - sizeof(head)));
      } catch (const Error &) { // a stranger's
      }
  }
  return heard;
}

std::vector<int> UdpHeartbeats::unheardNodes() const {
  std::vector<int> unheard;
  for (int rank = 0; rank < int(nodes.size()); ++rank)
    if (nodes[size_t(rank)] == rank && rank != nodes[size_t(self)] && !isHeard[size_t(rank)])
      unheard.push_back(rank);
  return unheard;
}

void UdpHeartbeats::tell(Kind kind) {
  for (int rank = 0; rank < int(nodes.size()); ++rank)
    if (nodes[size_t(rank)] != nodes[size_t(self)])
      sendTo(rank, datagram({run, self, int32_t(kind)}, ""));
}

} // namespace partita_rt
