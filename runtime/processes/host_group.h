// A communicator of all ranks for data in host memory: checkpoints, summaries.

#ifndef PARTITA_RT_PROCESSES_HOST_GROUP_H
#define PARTITA_RT_PROCESSES_HOST_GROUP_H

#include "common/mesh/immediate_group.h"
#include "processes/rendezvous.h"

namespace partita_rt::processes {

/// Collectives over the rendezvous, complete when they are started. What they move is small, or
/// written to a file: it takes no memory of the GPUs and no time of a step. Gathers and barriers;
/// nothing else is asked of a world.
class HostGroup final : public ImmediateGroup {
public:
  explicit HostGroup(Rendezvous &rendezvous)
      : ImmediateGroup("world", rendezvous.rank(), rendezvous.ranks()), rendezvous(rendezvous) {}
  Pending start(Request request) override;
  const RankPosition *positionOf(int rank) const { return rendezvous.positionOf(rank); }

private:
  Rendezvous &rendezvous;
  uint64_t started = 0;
};

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_HOST_GROUP_H
