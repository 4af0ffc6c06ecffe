// Groups that never wait: of one rank, or over the rendezvous.

#ifndef PARTITA_RT_COMMON_MESH_IMMEDIATE_GROUP_H
#define PARTITA_RT_COMMON_MESH_IMMEDIATE_GROUP_H

#include "partita_rt/comm.h"

namespace partita_rt {

/// A collective is complete when start() returns, so there is nothing to wait for or to poll.
class ImmediateGroup : public Communicator {
public:
  using Communicator::Communicator;
  void finish(uint64_t) final {}
  int64_t poll(int64_t) final { return 0; }
  bool isComplete(uint64_t) const final { return true; }
  int outstanding() const final { return 0; }
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_IMMEDIATE_GROUP_H
