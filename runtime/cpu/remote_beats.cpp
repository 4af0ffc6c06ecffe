// Datagrams between processes (remote_beats.h).

#include "cpu/remote_beats.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
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

in6_addr mapped(const in_addr &address) {
  in6_addr result{};
  result.s6_addr[10] = result.s6_addr[11] = 0xff;
  std::memcpy(result.s6_addr + 12, &address, sizeof(address));
  return result;
}

/// Returns this machine's addresses, loopback last, for processes of the same machine.
std::vector<in6_addr> ownAddresses(size_t most) {
  std::vector<in6_addr> found;
  ifaddrs *first = nullptr;
  if (getifaddrs(&first) == 0) {
    for (ifaddrs *each = first; each; each = each->ifa_next) {
      if (!each->ifa_addr || (each->ifa_flags & IFF_LOOPBACK) || !(each->ifa_flags & IFF_UP))
        continue;
      if (each->ifa_addr->sa_family == AF_INET)
        found.push_back(mapped(reinterpret_cast<sockaddr_in *>(each->ifa_addr)->sin_addr));
      else if (each->ifa_addr->sa_family == AF_INET6)
        if (auto *its = reinterpret_cast<sockaddr_in6 *>(each->ifa_addr);
            !IN6_IS_ADDR_LINKLOCAL(&its->sin6_addr)) // needs the name of an interface
          found.push_back(its->sin6_addr);
    }
    freeifaddrs(first);
  }
  if (found.size() >= most)
    found.resize(most - 1);
  in_addr loopback{};
  loopback.s_addr = htonl(INADDR_LOOPBACK);
  found.push_back(mapped(loopback));
  return found;
}

} // namespace

/// Binds the socket to any port. Without one, this process neither sends nor hears.
RemoteBeats::Endpoint RemoteBeats::open() {
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
  for (const in6_addr &address : ownAddresses(Endpoint::kMost))
    own.addresses[own.count++] = address;
  return own;
}

RemoteBeats::RemoteBeats(int self, const std::vector<int> &nodes) : self(self), nodes(nodes) {
  Endpoint own = open();
  endpoints.resize(nodes.size());
  MPI_Allgather(&own, sizeof(own), MPI_BYTE, endpoints.data(), sizeof(own), MPI_BYTE,
                MPI_COMM_WORLD);
  if (self == 0) {
    std::random_device random;
    run = uint64_t(random()) << 32 | random();
  }
  MPI_Bcast(&run, sizeof(run), MPI_BYTE, 0, MPI_COMM_WORLD);
  std::set<int> firsts(nodes.begin(), nodes.end());
  for (int rank : firsts)
    if (watching.size() < kWatching)
      watching.push_back(rank);
}

RemoteBeats::~RemoteBeats() {
  if (socket >= 0)
    close(socket);
}

bool RemoteBeats::watches() const {
  return std::find(watching.begin(), watching.end(), self) != watching.end();
}

int RemoteBeats::turnOf(int rank) const {
  return int(std::find(watching.begin(), watching.end(), nodes[size_t(rank)]) - watching.begin());
}

void RemoteBeats::wait(double seconds) const {
  pollfd wait{socket, POLLIN, 0};
  poll(&wait, socket >= 0 ? 1 : 0, std::max(int(seconds * 1000), 1));
}

void RemoteBeats::sendTo(int rank, const std::string &datagram) {
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

void RemoteBeats::send(const RankPlace &own) {
  std::string text = datagram({run, self, int32_t(Kind::Place)}, imageOf(own));
  for (int rank : watching)
    if (nodes[size_t(rank)] != nodes[size_t(self)])
      sendTo(rank, text);
}

RemoteBeats::Heard RemoteBeats::receive(const std::vector<RankPlace *> &places) {
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
    heard.ends |= head.kind == int32_t(Kind::End);
    if (int turn = turnOf(head.rank);
        head.kind == int32_t(Kind::Claim) && turn < heard.claim.value_or(turn + 1))
      heard.claim = turn;
    if (RankPlace *place = places[size_t(head.rank)]; place && head.kind == int32_t(Kind::Place))
      try {
        readImage(*place, std::string(bytes + sizeof(head), size_t(n) - sizeof(head)));
      } catch (const Error &) { // a stranger's
      }
  }
  return heard;
}

void RemoteBeats::tell(Kind kind) {
  for (int rank = 0; rank < int(nodes.size()); ++rank)
    if (nodes[size_t(rank)] != nodes[size_t(self)])
      sendTo(rank, datagram({run, self, int32_t(kind)}, ""));
}

} // namespace partita_rt
