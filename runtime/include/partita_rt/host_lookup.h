// Whether a host's name has an address here. The compiler's `partita run` asks too, so this header
// includes no other header of the runtime.

#ifndef PARTITA_RT_HOST_LOOKUP_H
#define PARTITA_RT_HOST_LOOKUP_H

#include <netdb.h>
#include <string>

namespace partita_rt {

/// Returns 0 if the host has an address on this host, else getaddrinfo's error, for gai_strerror.
inline int lookUpHost(const std::string &host) {
  addrinfo *addresses = nullptr;
  int error = getaddrinfo(host.c_str(), nullptr, nullptr, &addresses);
  if (error == 0)
    freeaddrinfo(addresses);
  return error;
}

/// May the same lookup succeed later? Another name server may answer then.
inline bool lookUpMayPass(int error) { return error == EAI_AGAIN || error == EAI_SYSTEM; }

} // namespace partita_rt

#endif // PARTITA_RT_HOST_LOOKUP_H
