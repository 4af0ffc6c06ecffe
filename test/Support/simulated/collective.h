// A collective of the simulated NCCL, and its results from all ranks' contributions.

#ifndef PARTITA_TEST_SIMULATED_COLLECTIVE_H
#define PARTITA_TEST_SIMULATED_COLLECTIVE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace simulated {

/// One call; equal on all ranks, except for messages: the counterpart of a send is a receive, in the same group.
struct CollectiveCall {
  enum class Kind : uint8_t {
    AllReduce,
    Reduce,
    Broadcast,
    ReduceScatter,
    AllGather,
    Send,
    Receive
  };
  size_t count;
  int type, op, root; ///< type: an ncclDataType_t; op: an ncclRedOp_t; root: also the peer
  Kind kind;
};
struct Collective : CollectiveCall {
  const char *from;
  char *to;
};

const char *nameOf(CollectiveCall::Kind kind);
/// Returns the bytes per element (nccl_types.h); 0: there is no such type.
size_t widthOf(int type);
/// Return the elements that a rank of `size` contributes to a call, and that it receives.
size_t given(const CollectiveCall &call, int rank, int size);
size_t received(const CollectiveCall &call, int rank, int size);

/// Returns a rank's contribution to a group: the calls, then the data that each of them reads.
std::string contribution(const std::vector<Collective> &group, int rank, int size);
/// Writes a rank's results, computed from the contributions of all ranks: sums in rank order, in
/// float for 16-bit types, rounded once. Throws std::runtime_error if the ranks' calls differ.
void compute(const std::vector<Collective> &group, int rank,
             const std::vector<std::string> &contributions);

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_COLLECTIVE_H
