// Gathers host memory in chunks (host_group.h).

#include "processes/host_group.h"

#include "common/mesh/request.h"

#include <algorithm>
#include <cstring>

namespace partita_rt::processes {

/// Bytes that one rank contributes at a time.
constexpr int64_t kChunkBytes = 512 << 10;

Pending HostGroup::start(Request request) {
  CollectiveCount &count = counts[int(request.kind)];
  ++count.calls;
  count.bytes += request.bytes(size());
  if (request.kind == CollectiveKind::Barrier) {
    rendezvous.barrier(request.why);
  } else if (request.kind == CollectiveKind::AllGather) {
    for (const Item &item : request.items) {
      int64_t bytes = item.count * sizeOf(request.dtype);
      for (int64_t at = 0; at < bytes; at += kChunkBytes) {
        int64_t n = std::min(kChunkBytes, bytes - at);
        std::vector<std::string> all =
            rendezvous.allGather(std::string(item.from + at, size_t(n)), request.why);
        for (int64_t r = 0; r < size(); ++r) {
          if (int64_t(all[size_t(r)].size()) != n)
            fail("%s: rank %lld gives %zu bytes, this one %lld", request.why, (long long)r,
                 all[size_t(r)].size(), (long long)n);
          std::memcpy(item.to + r * bytes + at, all[size_t(r)].data(), size_t(n));
        }
      }
    }
  } else {
    fail("%s of the host's memory for %s: only gathers and barriers are made between hosts",
         nameOf(request.kind), request.why);
  }
  return {this, ++started};
}

} // namespace partita_rt::processes
