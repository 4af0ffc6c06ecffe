// Maps other processes' memory (shared_pages.h).

#include "cpu/links/sockets/shared_pages.h"
#include "partita_rt/machine.h"
#include "partita_rt/types.h"
#include "processes/wire.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita_rt {

/// The first bytes of a rank's memory: they show that it is the right one, wherever process numbers
/// mean different processes.
constexpr int64_t kTokenBytes = 64;

void SharedPages::map(int rank, int descriptor) {
  void *memory = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory != MAP_FAILED)
    regions[size_t(rank)] = static_cast<char *>(memory);
}

/// Maps a rank's memory, if its process is of this host and lets it.
void SharedPages::open(int rank, const std::string &text, const std::string &machine) {
  std::vector<std::string> fields = processes::unpack(text, 3);
  if (fields[0] != machine)
    return;
  processes::Socket file(::open(fields[1].c_str(), O_RDWR | O_CLOEXEC));
  // In this PID namespace the number may be that of a shorter file, or of something else.
  struct stat status;
  if (!file.isOpen() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size != bytes)
    return;
  map(rank, file.get());
  char *&region = regions[size_t(rank)];
  if (region &&
      std::memcmp(region, fields[2].data(), std::min<size_t>(fields[2].size(), 64)) != 0) {
    munmap(region, size_t(bytes));
    region = nullptr;
  }
}

SharedPages::SharedPages(processes::Rendezvous &rendezvous, int64_t itsBytes,
                         const std::string &node)
    : regions(size_t(rendezvous.ranks())), bytes(itsBytes + kTokenBytes) {
  int self = rendezvous.rank(), ranks = rendezvous.ranks();
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i)
    token += std::to_string(random()) + " ";
  token.resize(kTokenBytes);
  processes::Socket own(memfd_create("partita", MFD_CLOEXEC));
  if (!own.isOpen() || ftruncate(own.get(), bytes) != 0 ||
      (map(self, own.get()), !regions[size_t(self)]))
    fail("cannot allocate %lld bytes that processes share: %s", (long long)bytes,
         std::strerror(errno));
  std::memcpy(regions[size_t(self)], token.data(), kTokenBytes);
  std::string machine = bootId() + " " + rendezvous.peers()[size_t(self)].host + " node " + node;
  std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(own.get());
  std::vector<std::string> all =
      rendezvous.allGather(processes::pack({machine, path, token}), "shared memory");
  for (int r = 0; r < ranks; ++r)
    if (r != self)
      open(r, all[size_t(r)], machine);
  // Whom each one sees: a node's ranks must all see each other.
  std::string seen;
  for (const char *region : regions)
    seen += region ? '1' : '0';
  std::vector<std::string> sight = rendezvous.allGather(seen, "whose memory is seen");
  for (int r = 0; r < ranks; ++r) {
    int lowest = 0;
    while (lowest < r &&
           !(sight[size_t(r)] == sight[size_t(lowest)] && sight[size_t(r)][size_t(lowest)] == '1'))
      ++lowest;
    nodes.push_back(lowest);
  }
  for (int r = 0; r < ranks; ++r) {
    if (regions[size_t(r)] && nodes[size_t(r)] != nodes[size_t(self)]) {
      munmap(regions[size_t(r)], size_t(bytes));
      regions[size_t(r)] = nullptr;
    }
    if (regions[size_t(r)])
      regions[size_t(r)] += kTokenBytes;
  }
}

SharedPages::~SharedPages() {
  for (char *region : regions)
    if (region)
      munmap(region - kTokenBytes, size_t(bytes));
}

} // namespace partita_rt
