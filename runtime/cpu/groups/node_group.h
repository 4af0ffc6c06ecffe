// Collectives of ranks that are processes on several nodes, with some of them on one node: within a
// node through shared memory, between nodes once per node instead of once per rank.
//
// The members of a node follow each other in the group's order. On each node some members, its
// carriers, exchange messages with those of the same number on the other nodes; each carries a share
// of what goes between the nodes, all at the same time.
//
//     sums       a carrier adds its node's values of its share, in rank order, to the sum that it gets
//                from the node before, and passes that on: the sum is that of all ranks in rank order,
//                and its type is that of additions until the last node rounds it. That one sends the
//                results to the other nodes: all of them, or what is for their ranks
//     transfers  a carrier sends what its share of its node's members gives to each other node
//     shifts     a carrier sends its share of what the member at its node's border gives to the next node
//     root's     the carriers of the root's node send its values to each other node
//
// node_traffic.h has the same in bytes: whoever changes what is sent changes it there too.
//
// Segments are filled, reduced and read as in a shared window (window_group.h); between reducing and
// reading, results arrive in the carriers' shared memory.

#ifndef PARTITA_RT_CPU_GROUPS_NODE_GROUP_H
#define PARTITA_RT_CPU_GROUPS_NODE_GROUP_H

#include "cpu/groups/announcements.h"
#include "cpu/groups/board.h"
#include "cpu/groups/messenger.h"
#include "cpu/groups/segmented_group.h"

namespace partita_rt {

class NodeGroup final : public SegmentedGroup {
public:
  /// `slots`, `staging`: of the node's members; staging[r] has kStagingSlots * 2 * stagingSlotBytes
  /// bytes: of a staging slot, what the rank gives, and what arrives from other nodes.
  /// `itsMessenger`: among all members.
  NodeGroup(std::string axis, int rank, NodeLayout itsLayout, BoardSlot *const *slots,
            char *const *staging, int64_t stagingSlotBytes, std::shared_ptr<void> memory,
            std::unique_ptr<Messenger> itsMessenger);

  /// The members with which this one exchanges messages.
  static std::set<int> peersOf(const NodeLayout &layout, int rank);

  void forStaging(const Visit &visit) const override;

private:
  struct StagingSlot {
    std::vector<char> sums; ///< of a carrier's share
    std::unique_ptr<Exchange> sumsBefore, messages;
  };

  void publish(uint64_t number) override;
  std::string awaited() const override;
  int awaitedRank() const override;
  int64_t segmentElements(const Request &request) const override;
  bool mayFill(const Segment &segment) override;
  void fill(const Segment &segment) override;
  bool mayReduce(const Segment &segment) override;
  void reduce(const Segment &segment) override;
  bool isRead(const Request &) const override { return true; }
  bool mayRead(const Segment &segment) override;
  void read(const Segment &segment) override;
  void release(const Segment &segment) override { board.set(&BoardSlot::read, segment.number + 1); }

  int peerAwaited() const;
  int carrierOf(int node) const { return layout.firsts[size_t(node)] + local; }
  void await(const Segment &segment);
  void sumShare(const Segment &segment);
  void sendTransfers(const Segment &segment);
  void sendShift(const Segment &segment);
  void readTransfers(const Segment &segment);
  void readShares(const Segment &segment, Range wanted);
  Range shareOfCarrier(const Segment &segment, int carrier) const;
  Range forNode(const Segment &segment, Range share, int node) const;
  int64_t slotBytes(const Segment &segment, int node) const;
  /// Calls visit(member, slot) for the members of other nodes whose transfers a carrier receives.
  template <typename Body> void forArriving(int carrier, const Body &visit) const;
  template <typename Body> void forOtherNodes(const Body &body) const;
  /// To a carrier of another node.
  void send(StagingSlot &staged, const char *data, int64_t bytes, int n, int tag, Sending how);
  char *given(int member, const Segment &segment) const {
    return staging[size_t(member - first)] + int64_t(segment.stagingSlot()) * 2 * stagingSlotBytes;
  }
  char *arrived(int carrier, const Segment &segment) const {
    return given(first + carrier, segment) + stagingSlotBytes;
  }

  NodeLayout layout;
  int node, first, local; ///< this rank's node, its first member, this rank among them
  bool carries;
  Board board;
  std::vector<char *> staging;
  int64_t stagingSlotBytes;
  std::shared_ptr<void> memory;
  std::unique_ptr<Messenger> messenger;
  Announcements announcements; ///< of carriers; others tell nobody
  std::array<StagingSlot, kStagingSlots> stagingSlots;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_NODE_GROUP_H
