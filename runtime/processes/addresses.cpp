// Reads the host's interfaces (addresses.h).

#include "processes/addresses.h"

#include <arpa/inet.h>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>

namespace partita_rt::processes {

static in6_addr mapped(const in_addr &address) {
  in6_addr result{};
  result.s6_addr[10] = result.s6_addr[11] = 0xff;
  std::memcpy(result.s6_addr + 12, &address, sizeof(address));
  return result;
}

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

std::string textOf(const in6_addr &address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (IN6_IS_ADDR_V4MAPPED(&address))
    inet_ntop(AF_INET, address.s6_addr + 12, text, sizeof(text));
  else
    inet_ntop(AF_INET6, &address, text, sizeof(text));
  return text;
}

} // namespace partita_rt::processes
