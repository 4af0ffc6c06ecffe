// Collectives over point-to-point messages (messenger.h), for ranks that are processes on several
// nodes. Each rank sums its share in rank order and sends it to the others, so the bits are those of
// shared memory. Messages move in polls and waits. node_traffic.h has what is sent, in bytes: whoever
// changes it changes it there too.

#ifndef PARTITA_RT_CPU_GROUPS_MESSAGE_GROUP_H
#define PARTITA_RT_CPU_GROUPS_MESSAGE_GROUP_H

#include "cpu/groups/announcements.h"
#include "cpu/groups/messenger.h"
#include "cpu/groups/segmented_group.h"

#include <memory>
#include <set>

namespace partita_rt {

class MessageGroup final : public SegmentedGroup {
public:
  /// `itsNodes`: by member. `itsMessenger` has these members, in group order, and belongs to this object alone.
  MessageGroup(std::string axis, int rank, std::vector<int> itsNodes,
               std::unique_ptr<Messenger> itsMessenger)
      : SegmentedGroup(std::move(axis), rank, int(itsNodes.size())), nodes(std::move(itsNodes)),
        messenger(std::move(itsMessenger)),
        announcements(*messenger, axisName, rank, othersOf(rank, groupSize), kRing) {
    for (StagingSlot &each : stagingSlots)
      each.messages = messenger->exchange();
  }

  void forStaging(const Visit &visit) const override {
    for (const StagingSlot &staged : stagingSlots)
      for (const std::vector<char> *each : {&staged.outgoing, &staged.incoming})
        visit(each->data(), int64_t(each->capacity()));
  }

private:
  struct StagingSlot {
    std::vector<char> outgoing, incoming;
    std::unique_ptr<Exchange> messages;
  };

  static std::set<int> othersOf(int rank, int size);
  void publish(uint64_t number) override { announcements.publish(signature(number)); }
  std::string awaited() const override;
  int awaitedRank() const override;
  /// Returns the ranks that block the oldest collective.
  std::set<int> awaitedRanks() const;
  bool isAnnounced() const { return announcements.isAgreed(completed + 1); }
  int64_t segmentElements(const Request &request) const override;
  /// False until the signatures are known to agree: messages of another size would end the job.
  bool mayFill(const Segment &segment) override {
    return announcements.agree(signature(segment.collective));
  }
  void fill(const Segment &segment) override;
  bool mayReduce(const Segment &segment) override { return slotOf(segment).messages->test(); }
  void reduce(const Segment &segment) override;
  bool mayRead(const Segment &segment) override { return slotOf(segment).messages->test(); }
  void read(const Segment &segment) override;

  /// Returns the range that rank c reduces or gets, in elements of the segment's packed data.
  Range shareOfRank(const Segment &segment, int c) const;
  void sendRoots(StagingSlot &staged, int64_t bytes, int root);
  void shiftShards(StagingSlot &staged, int64_t bytes, bool back);
  void exchangeShares(const Segment &segment, StagingSlot &staged);
  void sumShare(const Segment &segment, StagingSlot &staged);
  void exchangeSums(const Segment &segment, StagingSlot &staged);
  void send(StagingSlot &staged, const char *data, int64_t bytes, int to, int tag, Sending how);
  StagingSlot &slotOf(const Segment &segment) { return stagingSlots[segment.stagingSlot()]; }

  std::vector<int> nodes; ///< by member
  std::unique_ptr<Messenger> messenger;
  Announcements announcements;
  std::array<StagingSlot, kStagingSlots> stagingSlots;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_MESSAGE_GROUP_H
