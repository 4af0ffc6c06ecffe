// Collectives between processes of one node: the staging memory is a shared window that all ranks
// read directly.

#ifndef PARTITA_RT_CPU_GROUPS_WINDOW_GROUP_H
#define PARTITA_RT_CPU_GROUPS_WINDOW_GROUP_H

#include "cpu/groups/board.h"
#include "cpu/groups/segmented_group.h"

namespace partita_rt {

class WindowGroup final : public SegmentedGroup {
public:
  /// staging[r]: kStagingSlots * stagingSlotBytes bytes of rank r, which all ranks see, as they do
  /// the slots.
  WindowGroup(std::string axis, int rank, int size, BoardSlot *const *slots, char *const *staging,
              int64_t stagingSlotBytes, std::shared_ptr<void> window)
      : SegmentedGroup(std::move(axis), rank, size), board(axisName, rank, size, slots),
        staging(staging, staging + size), stagingSlotBytes(stagingSlotBytes),
        window(std::move(window)) {}

  void forStaging(const Visit &visit) const override {
    for (const char *each : staging) // the others' pages that it reads count as its memory too
      visit(each, stagingSlotBytes * int64_t(kStagingSlots));
  }

private:
  void publish(uint64_t number) override { board.publish(signature(number)); }
  std::string awaited() const override {
    return board.awaited(signature(completed + 1), memberText(awaitedRank()));
  }
  int awaitedRank() const override { return board.awaitedRank(signature(completed + 1)); }
  int64_t segmentElements(const Request &request) const override;
  bool mayFill(const Segment &segment) override;
  void fill(const Segment &segment) override;
  bool mayReduce(const Segment &segment) override;
  void reduce(const Segment &segment) override;
  bool mayRead(const Segment &segment) override;
  void read(const Segment &segment) override;
  void release(const Segment &segment) override;

  char *stagedBy(int rank, const Segment &segment) const {
    return staging[size_t(rank)] + int64_t(segment.stagingSlot()) * stagingSlotBytes;
  }

  Board board;
  std::vector<char *> staging;
  int64_t stagingSlotBytes;
  std::shared_ptr<void> window;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_WINDOW_GROUP_H
