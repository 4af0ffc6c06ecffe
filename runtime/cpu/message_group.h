// Collectives by point-to-point messages: ranks as MPI processes of several nodes. Each rank sums
// its share in rank order and sends it to the others, so the bits are those of shared memory.

#ifndef PARTITA_RT_CPU_MESSAGE_GROUP_H
#define PARTITA_RT_CPU_MESSAGE_GROUP_H

#include "cpu/group.h"

#include <mpi.h>

namespace partita_rt {

class MessageGroup final : public OrderedGroup {
public:
  /// `communicator` has `size` ranks, in group order, and is this object's alone.
  MessageGroup(std::string axis, int rank, int size, MPI_Comm communicator)
      : OrderedGroup(std::move(axis), rank, size), comm(communicator) {}

private:
  /// Sends the signature ahead, so that a rank that waits in another collective learns of it.
  void publish(uint64_t number) override;
  void execute(uint64_t number) override;
  void agree(uint64_t number);
  void reduceSegment(const Request &request, int64_t begin, int64_t count);
  void allGather(const Request &request, int64_t begin, int64_t count);
  void broadcastSegment(const Request &request, int64_t begin, int64_t count);

  MPI_Comm comm;
  std::array<std::vector<MPI_Request>, kRing> announcements;
  std::vector<char> outgoing, incoming;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_MESSAGE_GROUP_H
