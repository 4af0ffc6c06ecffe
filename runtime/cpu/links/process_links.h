// The processes of a run whose ranks are processes: how they find each other, share memory, send
// messages, watch each other and end. Ranks' groups and channels (process_ranks.h) are the same over
// both: MPI, if its launcher has started the processes (mpi/), and TCP (sockets/).

#ifndef PARTITA_RT_CPU_LINKS_PROCESS_LINKS_H
#define PARTITA_RT_CPU_LINKS_PROCESS_LINKS_H

#include "cpu/groups/messenger.h"
#include "cpu/watch/waits.h"

#include <memory>
#include <string>
#include <vector>

namespace partita_rt {

/// Memory that the processes of one node share.
struct NodeMemory {
  std::vector<char *> regions; ///< by rank, at multiples of 64 bytes; null on other nodes
  std::vector<int> nodes;      ///< by rank: the lowest rank of its node
  std::shared_ptr<void> owner; ///< of the memory
};

/// All processes call functions that are marked "together" in the same order.
class ProcessLinks {
public:
  virtual ~ProcessLinks() = default;
  /// The rank on the mesh (common/mesh/node_order.h).
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  /// Returns the launcher's numbers, by rank.
  virtual std::vector<int> launcherNumbers() const = 0;

  /// Together: returns every process's text, by rank. `what` names the occasion.
  virtual std::vector<std::string> allGather(const std::string &mine, const char *what) = 0;
  /// Together: allocates so many bytes for each process, which those of its node share. What is in
  /// them is undefined: each constructs its own, and a gather must follow before others look. With
  /// PARTITA_RT_TRANSPORT=messages each process is a node of its own; nodes:N and dealt:N pretend N nodes.
  virtual NodeMemory shareMemory(int64_t bytes) = 0;
  /// Together: returns messages among `members`, ascending ranks with this one; null if there are
  /// none. `peers`: members, by number, with whom this one exchanges any.
  virtual std::unique_ptr<Messenger> messenger(const std::vector<int> &members,
                                               const std::set<int> &peers) = 0;

  /// Together: the view from this process's rank.
  virtual RankView show(const Rank &rank) = 0;
  /// Watches the ranks until the returned object, which may be null, is destroyed: all end if one
  /// stops, or makes no progress. `waits`: the rank's, made from the view.
  virtual std::shared_ptr<void> watch(RankWaits &waits) = 0;
  /// Ends all processes because of an error of this one's rank: one prints "NAME: error: rank R:
  /// MESSAGE".
  [[noreturn]] virtual void fail(const std::string &message) = 0;
};

/// Joins the processes of MPI's launcher. Programs that are linked without MPI do not have it: the
/// pointer is then null.
[[gnu::weak]] std::unique_ptr<ProcessLinks> joinByMpi(const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_LINKS_PROCESS_LINKS_H
