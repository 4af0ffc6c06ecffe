// Memory that processes of one host share without files: each opens that of the others through
// /proc. It is gone with the last process, however that ends.

#ifndef PARTITA_RT_CPU_LINKS_SOCKETS_SHARED_PAGES_H
#define PARTITA_RT_CPU_LINKS_SOCKETS_SHARED_PAGES_H

#include "processes/rendezvous.h"

#include <memory>
#include <string>
#include <vector>

namespace partita_rt {

/// What all ranks of a run have allocated, as far as this process can map it.
class SharedPages {
public:
  /// All ranks make one together, each with as many `bytes`. `node`: those that name different ones
  /// share none.
  SharedPages(processes::Rendezvous &rendezvous, int64_t bytes, const std::string &node);
  ~SharedPages();
  SharedPages(const SharedPages &) = delete;
  SharedPages &operator=(const SharedPages &) = delete;

  /// By rank; null: it cannot be mapped here.
  std::vector<char *> regions;
  /// By rank: the lowest of those that all see each other's memory.
  std::vector<int> nodes;

private:
  void map(int rank, int descriptor);
  void open(int rank, const std::string &text, const std::string &machine);
  int64_t bytes;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_LINKS_SOCKETS_SHARED_PAGES_H
