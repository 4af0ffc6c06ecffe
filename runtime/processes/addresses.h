// The addresses at which this host can be reached.

#ifndef PARTITA_RT_PROCESSES_ADDRESSES_H
#define PARTITA_RT_PROCESSES_ADDRESSES_H

#include <netinet/in.h>
#include <string>
#include <vector>

namespace partita_rt::processes {

/// Returns at most so many of this host's addresses, IPv4 as IPv6; loopback last, for processes of
/// the same host.
std::vector<in6_addr> ownAddresses(size_t most);
/// "10.0.0.3", "fd00::3".
std::string textOf(const in6_addr &address);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_ADDRESSES_H
